// `waggle export`: the whole journal as lines of JSON, for archives and auditors. Not here: the lines
// (audit/export.ts).

import type { WriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { Command } from "commander";
import { exportLines } from "../audit/export.ts";
import type { LostBatches } from "../audit/lost-batches.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { fileError } from "./file-error.ts";
import { openJournal } from "./readable-journal.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { batchesText } from "./verify-view.ts";

/** So that a slow reader of the pipe does not fill the memory. */
const LINES_PER_FLUSH = 200;

export function exportCommand(program: Program): Command {
  return new Command("export")
    .description(
      "Writes every record of the journal, complete and in order, as one JSON object per line. `waggle verify FILE` checks " +
        "the file without any server. An unreadable record becomes a line with the error. Changes nothing, and may run " +
        "beside coordinators.",
    )
    .argument("[journal]", "a folder of a file journal, or a data folder; default: the swarm's journal")
    .option("-o, --output <file>", "write to this file; default: stdout")
    .addHelpText("after", `${details}${examples}`)
    .action((target: string | undefined, flags: { readonly output?: string }, command: Command) =>
      runVerb(program, command, (context) => exportJournal(context, target, flags.output)),
    );
}

const details = `
Exit codes: 0 exported; 7 exported as far as possible, and batches are lost without a record of the loss in the journal; 3 no server
can be reached; 2 no such journal exists.
`;

const examples = `
Examples:
  $ waggle export -o audit.ndjson
  $ waggle export | gzip > audit.ndjson.gz
  $ waggle export | jq -c 'select(.record.kind == "batch") | .record.events[]'
  $ waggle verify audit.ndjson`;

async function exportJournal(
  context: VerbContext,
  target: string | undefined,
  file: string | undefined,
): Promise<ExitCode> {
  const { settings, signal, shell, output } = context;
  let lost: readonly LostBatches[] = [];
  const { reader } = await openJournal(context, target);
  try {
    const lines = exportLines(reader, settings.swarm, (found) => {
      lost = found;
    });
    if (file === undefined) await print(lines, context);
    else await pipeline(withBreaks(lines), await writable(resolve(shell.cwd, file)), { signal });
    for (const each of lost) output.note(lostText(each));
    return lost.every(({ isAdmitted }) => isAdmitted) ? exitCodes.ok : exitCodes.journalDamaged;
  } finally {
    await reader.close();
  }
}

function lostText({ isAdmitted, ...batches }: LostBatches): string {
  const isSaid = isAdmitted ? ", and the journal says so" : ": `waggle verify` says more";
  return `${batchesText(batches)} cannot be read and are lost${isSaid}`;
}

async function print(lines: AsyncIterable<string>, { output, signal }: VerbContext): Promise<void> {
  let printed = 0;
  for await (const line of lines) {
    signal.throwIfAborted();
    if (output.closed.aborted) return; // the reader of the pipe has enough
    output.raw(line);
    printed += 1;
    if (printed % LINES_PER_FLUSH === 0) await output.flushed();
  }
}

async function* withBreaks(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`;
}

/** @throws UsageError if the file cannot be written */
async function writable(path: string): Promise<WriteStream> {
  const file = await open(path, "w").catch((error: unknown) => {
    throw fileError("write", path, error, "output");
  });
  return file.createWriteStream();
}
