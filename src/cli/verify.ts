// `waggle verify`: proves that a journal is as it was written, from its bytes alone. Not here: the check
// (audit/verifying/verify.ts), signed heads (audit/signed-head.ts), the report's text (verify-view.ts).

import { appendFile, readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Command } from "commander";
import {
  type HeadKey,
  isSigned,
  keyName,
  newKeyPem,
  parseHead,
  publicText,
  readKey,
  type SignedHead,
  signHead,
} from "../audit/signed-head.ts";
import { type Verification, verifyJournal } from "../audit/verifying/verify.ts";
import { systemClock } from "../clock.ts";
import { formatCount } from "../count-text.ts";
import { messageOf } from "../errors.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { fileError } from "./file-error.ts";
import { ProgressLine } from "./progress-line.ts";
import { openJournal } from "./readable-journal.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { type HeadsReport, verificationReport, verificationText } from "./verify-view.ts";

interface VerifyFlags {
  readonly anchor?: string;
  readonly key?: string;
}

export function verifyCommand(program: Program): Command {
  return new Command("verify")
    .description(
      "Reads the whole journal and checks each batch: hash, position in the chain, term, and fit with the earlier " +
        "batches. Checks each stored state against the state that the batches make. Names the first bad batch, " +
        "and what was changed as far as the journal shows it. Changes nothing, and may run beside coordinators.",
    )
    .argument(
      "[journal]",
      "a folder of a file journal, a data folder, or a file of `waggle export`; default: the swarm's journal",
    )
    .option(
      "--anchor <file>",
      "check the signed heads in this file, and add the present end if --key can sign",
    )
    .option(
      "--key <file>",
      "Ed25519 key (PEM) of the heads: private, created if missing; or public, to check only",
    )
    .addHelpText("after", `${details}${examples}`)
    .action((target: string | undefined, flags: VerifyFlags, command: Command) =>
      runVerb(program, command, (context) => verify(context, target, flags)),
    );
}

const details = `
The newest batch has no successor that could show a change, and anyone who can write the whole storage can replace
the whole chain. A signed head protects against both: keep the file of --anchor away from the storage, and check it
from time to time.

Exit codes: 0 whole; 7 changed, missing or unreadable; 3 no server can be reached; 2 no such journal exists.
`;

const examples = `
Examples:
  $ waggle verify
  $ waggle verify .waggle/journals/default
  $ waggle export > audit.ndjson && waggle verify audit.ndjson
  $ waggle verify --anchor heads.ndjson --key head-key.pem     check the heads, then sign the present end
  $ waggle verify --json | jq .fault`;

async function verify(
  context: VerbContext,
  target: string | undefined,
  { anchor, key: keyFile }: VerifyFlags,
): Promise<ExitCode> {
  if (keyFile !== undefined && anchor === undefined)
    throw new UsageError("--key signs and checks heads: name their file with --anchor", { field: "anchor" });
  const { output, signal, settings, shell } = context;
  const key = keyFile === undefined ? undefined : await keyOf(resolve(shell.cwd, keyFile));
  const heads = anchor === undefined ? undefined : await Heads.read(resolve(shell.cwd, anchor), key);
  const { reader, where } = await openJournal(context, target);
  try {
    const { found, wrong } = await checked(context, reader, heads);
    signal.throwIfAborted();
    if (found === undefined)
      throw new UsageError(`the swarm ${settings.swarm} has no journal ${where}: check --swarm`, {
        field: "swarm",
      });
    const report = verificationReport(found, { where, heads: await headsReport(heads, found, wrong) });
    output.datum(report, () => output.asStarted(verificationText(report, output)));
    return report.ok ? exitCodes.ok : exitCodes.journalDamaged;
  } finally {
    await reader.close();
  }
}

async function checked(
  { output, signal }: VerbContext,
  journal: Parameters<typeof verifyJournal>[0]["journal"],
  heads: Heads | undefined,
) {
  let text = "reading the journal";
  const progress = new ProgressLine(output, () => text);
  try {
    const found = await verifyJournal({
      journal,
      clock: systemClock,
      signal,
      onBatch: ({ idx }, hash) => heads?.compare(idx, hash),
      onProgress: ({ segment, last, idx }) => {
        text = `segment ${segment} of ${last}, batch ${formatCount(idx)}`;
      },
    });
    return { found, wrong: found === undefined ? undefined : heads?.wrongIn(found) };
  } finally {
    progress.end();
  }
}

// --- signed heads -----------------------------------------------------------------------------------

async function headsReport(
  heads: Heads | undefined,
  found: Verification,
  wrong: string | undefined,
): Promise<HeadsReport | undefined> {
  if (heads === undefined) return undefined;
  const isGood = wrong === undefined && found.fault === undefined;
  const addedIdx = isGood ? await heads.add(found) : undefined;
  return {
    checked: heads.count,
    keys: heads.keys,
    ...(wrong === undefined ? {} : { wrong }),
    ...(addedIdx === undefined ? {} : { addedIdx }),
  };
}

class Heads {
  readonly #file: string;
  readonly #key: HeadKey | undefined;
  readonly #heads: readonly SignedHead[];
  readonly #headsByIdx: Map<number, SignedHead[]>;
  #wrong: string | undefined;

  private constructor(file: string, key: HeadKey | undefined, heads: readonly SignedHead[]) {
    this.#file = file;
    this.#key = key;
    this.#heads = heads;
    this.#headsByIdx = grouped(heads);
  }

  /** @throws UsageError if the file cannot be read, or a line of it is no head */
  static async read(file: string, key: HeadKey | undefined): Promise<Heads> {
    const text = await readFile(file, "utf8").catch((error: unknown) => {
      if (key?.privateKey !== undefined && (error as NodeJS.ErrnoException).code === "ENOENT") return "";
      throw fileError("read", file, error, "anchor");
    });
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    const heads = lines.map((line, at) => {
      try {
        return parseHead(line);
      } catch (cause) {
        throw new UsageError(`line ${at + 1} of ${file}: ${messageOf(cause)}`, { cause, field: "anchor" });
      }
    });
    return new Heads(file, key, heads);
  }

  get count(): number {
    return this.#heads.length;
  }

  get keys(): readonly string[] {
    return [...new Set(this.#heads.map(({ key }) => key))];
  }

  /** Compares the heads of a batch. */
  compare(idx: number, hash: string): void {
    for (const head of this.#headsByIdx.get(idx) ?? [])
      if (head.hash !== hash)
        this.#wrong ??= `the head of batch ${formatCount(idx)}, signed ${head.signedAt}, names another hash: the journal was changed up to this batch`;
    this.#headsByIdx.delete(idx);
  }

  /** The first head that does not fit; after all batches were compared. */
  wrongIn({ journal, firstIdx, tail }: Verification): string | undefined {
    const trusted = this.#key === undefined ? undefined : publicText(this.#key);
    for (const head of this.#heads) {
      const name = `the head of batch ${formatCount(head.idx)}`;
      if (!isSigned(head)) return `${name} has no valid signature: the file of heads was changed`;
      if (trusted !== undefined && head.key !== trusted)
        return `${name} was signed with the key ${keyName(head.key)}, not with ${keyName(trusted)}`;
      if (head.journal !== journal)
        return `${name} is of the journal ${head.journal}, and this is ${journal}`;
      if (head.idx > tail.idx)
        return `${name} is missing from the journal, which ends at batch ${formatCount(tail.idx)}: the end was cut off, or the head is newer than this copy`;
    }
    for (const idx of this.#headsByIdx.keys()) if (idx < firstIdx) this.#headsByIdx.delete(idx); // no longer kept
    return this.#wrong;
  }

  /** Adds the journal's end, unless it was signed before or the key cannot sign. @returns its batch */
  async add({ journal, tail: { idx, hash }, at }: Verification): Promise<number | undefined> {
    const key = this.#key;
    if (key?.privateKey === undefined || idx === 0) return undefined;
    if (this.#heads.some((head) => head.idx === idx && head.hash === hash)) return undefined;
    const head = signHead({ journal, idx, hash, at, signedAt: new Date().toISOString() }, key);
    await appendFile(this.#file, `${JSON.stringify(head)}\n`).catch((error: unknown) => {
      throw fileError("write", this.#file, error, "anchor");
    });
    return idx;
  }
}

function grouped(heads: readonly SignedHead[]): Map<number, SignedHead[]> {
  const byIdx = new Map<number, SignedHead[]>();
  for (const head of heads) byIdx.set(head.idx, [...(byIdx.get(head.idx) ?? []), head]);
  return byIdx;
}

/** @throws UsageError */
async function keyOf(file: string): Promise<HeadKey> {
  const pem = await readFile(file, "utf8").catch(async (error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw fileError("read", file, error, "key");
    const made = newKeyPem();
    await writeFile(file, made, { mode: 0o600, flag: "wx" }).catch((cause: unknown) => {
      throw fileError("write", file, cause, "key");
    });
    return made;
  });
  try {
    return readKey(pem);
  } catch (cause) {
    throw new UsageError(`${file}: ${messageOf(cause)}`, { cause, field: "key" });
  }
}
