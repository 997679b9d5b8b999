// Prints at the end of a run which suites did not run, and why. A skipped suite must never look like a passed one.
// The reporter reads tests that vitest counts as skipped, and sentences ending in "; skipped" that suites print
// without a server (test/support/nats-server.ts).

import type { UserConsoleLog } from "vitest";
import type { Reporter, TestModule, Vitest } from "vitest/node";

export class SkippedSuitesReporter implements Reporter {
  readonly #reasons = new Set<string>();
  readonly #write: (text: string) => void;
  #byName = false;

  constructor(write: (text: string) => void = (text) => process.stderr.write(text)) {
    this.#write = write;
  }

  onInit(vitest: Vitest): void {
    this.#byName = vitest.config.testNamePattern !== undefined;
  }

  onUserConsoleLog(log: UserConsoleLog): void {
    for (const line of log.content.split("\n")) {
      if (line.endsWith("; skipped")) this.#reasons.add(line);
    }
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // With `-t` everything not asked for counts as skipped, and whoever asked knows.
    const lines = [...byReason(this.#reasons), ...(this.#byName ? [] : modules.flatMap(skippedIn))];
    if (lines.length === 0) return;
    this.#write(`\nNot run:\n${lines.map((line) => `  ${line}\n`).join("")}\n`);
  }
}

/** `SUITE: REASON; skipped` of several suites as `REASON: SUITE, SUITE`. */
function byReason(sentences: Iterable<string>): string[] {
  const suitesByReason = new Map<string, string[]>();
  for (const sentence of sentences) {
    const [, suite = "", reason = sentence] = /^(.*?): (.*); skipped$/.exec(sentence) ?? [];
    suitesByReason.set(reason, [...(suitesByReason.get(reason) ?? []), suite]);
  }
  return [...suitesByReason].map(([reason, suites]) => `${reason}\n    ${suites.join(", ")}`);
}

function skippedIn(module: TestModule): string[] {
  const tests = [...module.children.allTests()];
  const skipped = tests.filter((test) => test.result().state === "skipped").length;
  if (skipped === 0) return [];
  return [`${module.relativeModuleId}: ${skipped} of ${tests.length} tests skipped`];
}
