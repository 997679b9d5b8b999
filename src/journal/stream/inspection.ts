// A swarm's two streams as the server has them: whether they are there, their settings, how full they are, and who
// keeps them. For `waggle doctor`. Changes nothing. Not here: what is made of it (cli/doctor/stream.ts).

import { systemClock } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { Retry } from "../retry.ts";
import { StreamApi, type StreamReport } from "./api.ts";
import { findStream, type OpeningOptions, type OpeningWire } from "./opening.ts";
import { checkMaxPayload, checkStreamSettings, type SettingCheck, streamNameOf } from "./settings.ts";

export type FoundStream = { readonly stream: string } & (
  | { readonly kind: "there"; readonly report: StreamReport; readonly settings: readonly SettingCheck[] }
  /** The server says so; of one of two, it has said so for `limits.streamMissingMs`. */
  | { readonly kind: "missing" }
  /** Whether it is there is not known: JetStream is off, or the stream's servers do not answer. */
  | { readonly kind: "silent"; readonly error: WaggleError }
);

export interface StreamsInspection {
  readonly journal: FoundStream;
  readonly snapshots: FoundStream;
  readonly maxPayload: SettingCheck;
}

export type InspectionOptions = Omit<OpeningOptions, "create" | "purpose">;

/** Looks again where one of the two is missing: servers that fail over, and a coordinator that is just creating them,
 *  have the other in a moment. */
export async function inspectStreams(
  wire: OpeningWire,
  options: InspectionOptions,
): Promise<StreamsInspection> {
  const { signal = new AbortController().signal } = options;
  const absence = new Endurance(systemClock, limits.streamMissingMs);
  const retry = new Retry({ clock: systemClock, signal }, (listener) => wire.onStatus(listener));
  for (;;) {
    const [journal, snapshots] = await Promise.all([
      look(wire, { ...options, purpose: "journal" }),
      // Bounds that were asked for are the journal's.
      look(wire, { ...options, purpose: "snapshots", bytesMax: undefined, replicas: undefined }),
    ]);
    const isOneMissing = [journal, snapshots].filter(({ kind }) => kind === "missing").length === 1;
    if (!isOneMissing || absence.isBelieved())
      return { journal, snapshots, maxPayload: checkMaxPayload(wire.maxPayloadBytes) };
    await retry.pause();
  }
}

async function look(wire: OpeningWire, wanted: Omit<OpeningOptions, "create">): Promise<FoundStream> {
  const stream = streamNameOf(wanted);
  try {
    const report = await findStream(wire, new StreamApi(wire, stream), wanted);
    if (report === undefined) return { stream, kind: "missing" };
    return { stream, kind: "there", report, settings: checkStreamSettings(report.config, wanted) };
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return { stream, kind: "silent", error };
  }
}
