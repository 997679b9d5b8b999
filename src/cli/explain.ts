// `waggle explain TASK`: why a task waits, or the reason for the chosen agent; with --resource: which request for slots
// comes next. Not here: the views (explain-view.ts, slot-waits-view.ts).

import { Command } from "commander";
import { AssignmentReplay, type ReplayedAssignment } from "../audit/assignment-replay.ts";
import { copyOf, requireWhole } from "../audit/decision-replay.ts";
import { GrantReplay, type ReplayedGrant } from "../audit/grant-replay.ts";
import { verifyJournal } from "../audit/verifying/verify.ts";
import type { Swarm } from "../client/swarm.ts";
import { systemClock } from "../clock.ts";
import { formatCount } from "../count-text.ts";
import { WaggleError } from "../errors.ts";
import type { Batch } from "../journal/records.ts";
import type { SwarmState } from "../state/state.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { renderExplanation, renderReplayed } from "./explain-view.ts";
import { aboutTask, findProject, typedProject } from "./find-project.ts";
import { firstKeptIdx, noteChanged } from "./kept-record.ts";
import { showProgress } from "./progress-bar.ts";
import { ProgressLine } from "./progress-line.ts";
import { openJournal } from "./readable-journal.ts";
import { grantText, slotWaitsText } from "./slot-waits-view.ts";
import { UsageError } from "./usage-error.ts";
import { plainName, subjectToken, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface ExplainFlags {
  readonly full?: boolean;
  readonly attempt?: number;
  /** True: the swarm's journal. */
  readonly journal?: string | true;
  readonly resource?: string;
  readonly agent?: string;
  readonly handle?: string;
}

export function explainCommand(program: Program): Command {
  return new Command("explain")
    .description(
      "Shows why a task waits: the reason, the remedy, and when the task's turn comes. Also shows each agent with " +
        "its score, or the reason against the agent. For an assigned task: the candidates and the deciding reason. A receipt holds the three best candidates; --attempt and --full show every agent, by " +
        "replaying the journal up to that assignment. With --resource: the waiting requests for slots, in the present " +
        "order, with L and its terms; with --journal, the requests that competed for a past grant.",
    )
    .argument("[id]", "id of the task; required without --resource")
    .option("--project <name>", "project of the task. Default: the only project that has a task of this id")
    .option(
      "--attempt <n>",
      "show every agent at the moment of the n-th assignment",
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option(
      "--journal [source]",
      "replay from the journal itself, which needs no coordinator: a folder, a file of `waggle export`; default: the swarm's",
    )
    .option("--resource <name>", "show the next requests for slots of this resource, with reasons", plainName)
    .option(
      "--agent <id>",
      "with --resource: only the requests up to the last one of this agent",
      subjectToken,
    )
    .option("--handle <handle>", "with --agent: only the requests up to this handle", subjectToken)
    .option("--full", "show every agent: as of now if the task waits, else as of its last assignment")
    .addHelpText("after", examples)
    .action((id: string | undefined, flags: ExplainFlags, command: Command) =>
      runVerb(program, command, async (context) => {
        const { resource } = flags;
        if (resource !== undefined) return await explainSlots(context, id, { ...flags, resource });
        for (const field of ["agent", "handle"] as const)
          if (flags[field] !== undefined)
            throw new UsageError(`--${field} names a request for slots: name the resource with --resource`, {
              field,
            });
        if (id === undefined)
          throw new UsageError("name a task, or a resource with --resource: `waggle explain t1`", {
            field: "id",
          });
        const asked = { ...flags, typed: typedProject(command, context.settings) };
        return await (flags.journal === undefined
          ? explain(context, id, asked)
          : explainFromJournal(context, id, asked));
      }),
    );
}

const examples = `
Examples:
  $ waggle explain t1
  $ waggle explain t1 --attempt 1        every agent at the first assignment
  $ waggle explain t1 --journal audit.ndjson             its last assignment, without a swarm
  $ waggle explain --resource gpt-4o --agent a1          which requests come before those of a1
  $ waggle explain --resource gpt-4o --agent a1 --journal    why a1 got its last slot
  $ waggle explain t1 --json | jq '.waiting.obstacles[0]'
  $ waggle explain t1 --full --json | jq '.agents[] | {agent, standing}'`;

async function explain(
  context: VerbContext,
  id: string,
  { typed, ...flags }: ExplainFlags & { readonly typed: string | undefined },
): Promise<ExitCode> {
  const { output } = context;
  return await withSwarm(context, async (swarm) => {
    const { project: configured } = context.settings;
    if (flags.attempt !== undefined) {
      const { attempt } = flags;
      const project = await ask(context, (options) => findProject(swarm, { id, typed, configured }, options));
      return await replay(context, swarm, { id, project, attempt });
    }
    const explanation = await ask(context, (options) =>
      aboutTask({ typed, configured }, (project) => swarm.explain(id, { ...project, ...options })),
    );
    const { project, waiting, attempts, attemptCount, endedIdx, omitted } = explanation;
    if (flags.full === true && waiting === undefined && attempts.length > 0)
      return await replay(context, swarm, { id, project, attempt: attemptCount });
    const hasRecord = attemptCount > 0 || endedIdx !== undefined;
    const firstIdx = hasRecord && !output.json ? await firstKeptIdx(context, swarm, project) : 1;
    const shown = { explanation, showsAll: flags.full === true, firstIdx };
    output.datum({ taskId: id, ...explanation }, () => output.asStarted(renderExplanation(shown, output)));
    noteChanged(context, explanation.changedBatches);
    if (omitted !== undefined)
      output.note(
        `${formatCount(omitted.agents)} more agents do not fit the answer; waggle status counts them`,
      );
    return exitCodes.ok;
  });
}

interface Sought {
  readonly id: string;
  readonly project: string;
  readonly attempt: number;
}

async function replay(context: VerbContext, swarm: Swarm, sought: Sought): Promise<ExitCode> {
  const { output } = context;
  const replayed = await replayedAssignment(context, swarm, sought);
  output.datum(replayed, () => renderReplayed(replayed, output));
  return exitCodes.ok;
}

async function replayedAssignment(
  { output, signal }: VerbContext,
  swarm: Swarm,
  { id, project, attempt }: Sought,
): Promise<ReplayedAssignment> {
  const progress = showProgress(output, { name: "replaying the journal", unit: "batches" });
  try {
    return await swarm.replayAssignment(id, {
      project,
      attempt,
      onProgress: ({ idx, lastIdx }) => progress.at(idx, lastIdx),
      signal,
    });
  } finally {
    progress.stop();
  }
}

// --- from the journal itself ------------------------------------------------------------------------

async function explainFromJournal(
  context: VerbContext,
  id: string,
  { typed, attempt, journal }: ExplainFlags & { readonly typed: string | undefined },
): Promise<ExitCode> {
  const { output } = context;
  const replay = new AssignmentReplay({ project: typed, task: id }, attempt);
  const { found, where, firstIdx } = await foundIn<ReplayedAssignment>(context, journal, replay);
  const projects = [...new Set(found.map(({ project }) => project))];
  if (projects.length > 1)
    throw new WaggleError(
      "WAGGLE_AMBIGUOUS_TASK",
      `the projects ${projects.join(", ")} each have a task ${id}: name one with --project`,
    );
  const last = found.at(-1);
  if (last === undefined) {
    const what =
      attempt === undefined ? `no assignment of task ${id}` : `no attempt ${attempt} of task ${id}`;
    throw new WaggleError("WAGGLE_UNKNOWN_TASK", missingText(what, where, firstIdx));
  }
  output.datum(last, () => renderReplayed(last, output));
  return exitCodes.ok;
}

/** The last grant of slots of a resource to an agent, with the requests that competed. */
async function explainGrant(
  context: VerbContext,
  sought: { readonly resource: string; readonly agent: string; readonly handle: string | undefined },
  journal: string | true,
): Promise<ExitCode> {
  const { output } = context;
  const { found, where, firstIdx } = await foundIn<ReplayedGrant>(context, journal, new GrantReplay(sought));
  const last = found.at(-1);
  if (last === undefined) {
    const { resource, agent, handle } = sought;
    const what = `no grant of ${resource} to ${agent}${handle === undefined ? "" : ` under ${handle}`}`;
    throw new WaggleError("WAGGLE_UNKNOWN_HANDLE", missingText(what, where, firstIdx));
  }
  output.datum(last, () => grantText(last, output));
  return exitCodes.ok;
}

interface JournalSearch<Found> {
  startFrom(state: SwarmState): void;
  take(batch: Batch): Found | undefined;
}

/** What a replay finds in the whole journal, in order, and the first batch that is kept. */
async function foundIn<Found>(
  context: VerbContext,
  journal: string | true | undefined,
  search: JournalSearch<Found>,
): Promise<{ readonly found: readonly Found[]; readonly where: string; readonly firstIdx: number }> {
  const { output, signal } = context;
  const { reader, where } = await openJournal(context, journal === true ? undefined : journal);
  let text = "replaying the journal";
  const progress = new ProgressLine(output, () => text);
  const found: Found[] = [];
  try {
    const verified = await verifyJournal({
      journal: reader,
      clock: systemClock,
      signal,
      onBase: (state) => search.startFrom(copyOf(state)),
      onBatch: (batch) => {
        const one = search.take(batch);
        if (one !== undefined) found.push(one);
      },
      onProgress: ({ idx }) => {
        text = `replaying the journal: batch ${formatCount(idx)}`;
      },
    });
    signal.throwIfAborted();
    requireWhole(verified);
    return { found, where, firstIdx: verified?.firstIdx ?? 1 };
  } finally {
    progress.end();
    await reader.close();
  }
}

function missingText(what: string, where: string, firstIdx: number): string {
  const kept = firstIdx === 1 ? "" : `, which begins at batch ${formatCount(firstIdx)}`;
  return `there is ${what} in the journal ${where}${kept}`;
}

// --- requests for slots -----------------------------------------------------------------------------

async function explainSlots(
  context: VerbContext,
  id: string | undefined,
  { resource, agent, handle, attempt, full, journal }: ExplainFlags & { readonly resource: string },
): Promise<ExitCode> {
  if (id !== undefined || attempt !== undefined || full !== undefined)
    throw new UsageError("--resource explains requests for slots: leave out the task and its flags", {
      field: "resource",
    });
  if (handle !== undefined && agent === undefined)
    throw new UsageError("--handle names a request of an agent: name the agent with --agent", {
      field: "agent",
    });
  if (journal !== undefined) {
    if (agent === undefined)
      throw new UsageError("a past grant is an agent's: name the agent with --agent", { field: "agent" });
    return await explainGrant(context, { resource, agent, handle }, journal);
  }
  const { output } = context;
  return await withSwarm(context, async (swarm) => {
    const wanted = {
      ...(agent === undefined ? {} : { agent }),
      ...(handle === undefined ? {} : { handle }),
    };
    const waits = await ask(context, (options) => swarm.explainSlots(resource, { ...wanted, ...options }));
    output.datum(waits, () => slotWaitsText(waits, wanted, output));
    return exitCodes.ok;
  });
}
