// `waggle journal recover`: goes on from the last good batch of a damaged journal, when an operator says so. Without
// --yes it reports and changes nothing. Not here: reading (journal/salvage.ts), writing (coordinator/recovering/), the
// report's text (recovery-view.ts).

import { Command } from "commander";
import { systemClock, systemRandom } from "../clock.ts";
import { openRecovered } from "../coordinator/recovering/open-recovered.ts";
import { salvage } from "../journal/salvage.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { recoveryReport, recoveryText } from "./recovery-view.ts";
import { openStoppedJournal } from "./stopped-journal.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function journalCommand(program: Program): Command {
  return new Command("journal")
    .description(
      "A coordinator with an unreadable journal halts with exit code 7. A backup of the storage is the best " +
        "remedy. Without a backup, `waggle journal recover` continues from the last good batch of the journal.",
    )
    .addCommand(recoverCommand(program))
    .addHelpText("after", examples);
}

interface RecoverFlags {
  readonly yes?: boolean;
}

function recoverCommand(program: Program): Command {
  return new Command("recover")
    .summary("report the contents of a damaged journal, and continue from the last good batch")
    .description(
      "Reads the whole journal and reports the damage, the last good batch, and what is lost. Changes nothing without " +
        "--yes. With --yes it opens the next segment of the journal with the state at the last good batch. It removes " +
        "nothing. All coordinators of the swarm must be stopped before --yes.",
    )
    .option("--yes", "continue from the last good batch; everything after it is lost permanently")
    .addHelpText("after", `${details}${examples}`)
    .action((flags: RecoverFlags, command: Command) =>
      runVerb(program, command, (context) => recover(context, flags)),
    );
}

const details = `
A running coordinator may hold what the journal lost, and continues by itself: --yes is refused while one runs.
Tasks that were submitted after the last good batch are unknown afterwards. Tasks that ended after that batch run once more.

Exit codes: 0 the journal can be read to its end, or was recovered; 7 the journal is damaged; 5 --yes while a coordinator runs; 3 no server can
be reached; 2 no such journal exists.
`;

const examples = `
Examples:
  $ waggle journal recover
  $ waggle journal recover --nats nats://127.0.0.1:4222 --swarm acme --json
  $ waggle journal recover --yes`;

async function recover(context: VerbContext, { yes = false }: RecoverFlags): Promise<ExitCode> {
  const { output, signal, settings } = context;
  const stopped = await openStoppedJournal(context, { writes: yes });
  try {
    const found = await salvage({ journal: stopped.reader, clock: systemClock });
    signal.throwIfAborted();
    if (found.segments.length === 0)
      throw new UsageError(`the swarm ${settings.swarm} has no journal ${stopped.where}: check --swarm`, {
        field: "swarm",
      });
    const { log, damage, auditFirstIdx, segments } = found;
    const number = Math.max(...segments.map((segment) => segment.number)) + 1;
    const isRecovered = yes && damage !== undefined && log !== undefined;
    const report = recoveryReport(found, isRecovered ? number : undefined);
    if (isRecovered) {
      const { journal, sealed } = await stopped.openToWrite(segments);
      const id = `recover-${systemRandom.id(4)}`;
      const deps = { id, journal, clock: systemClock, random: systemRandom };
      await openRecovered(
        log,
        { auditFirstIdx, lostToIdx: report.lost?.upToIdx, sealed, number },
        deps,
        signal,
      );
    }
    output.datum(report, () => output.asStarted(recoveryText(report, output)));
    return damage === undefined || isRecovered ? exitCodes.ok : exitCodes.journalDamaged;
  } finally {
    await stopped.close();
  }
}
