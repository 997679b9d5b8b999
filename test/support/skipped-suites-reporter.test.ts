// The end of a run must name every suite that did not run.

import type { UserConsoleLog } from "vitest";
import { expect, test } from "vitest";
import type { TestModule } from "vitest/node";
import { SkippedSuitesReporter } from "./skipped-suites-reporter.ts";

function aLog(content: string): UserConsoleLog {
  return { content, type: "stderr", size: content.length, time: 0 };
}

/** The members that the reporter reads. */
function aModule(path: string, states: readonly string[]): TestModule {
  const tests = states.map((state) => ({ result: () => ({ state }) }));
  return { relativeModuleId: path, children: { allTests: () => tests } } as unknown as TestModule;
}

function reported(act: (reporter: SkippedSuitesReporter) => void): string {
  let written = "";
  const reporter = new SkippedSuitesReporter((text) => {
    written += text;
  });
  act(reporter);
  return written;
}

test("names skipped suites once each, under the missing installation", () => {
  const written = reported((reporter) => {
    reporter.onUserConsoleLog(aLog("journal: no server: install it; skipped\nsomething else\n"));
    reporter.onUserConsoleLog(
      aLog("journal: no server: install it; skipped\nbroker: no server: install it; skipped\n"),
    );
    reporter.onUserConsoleLog(aLog("demo: no git; skipped\n"));
    reporter.onTestRunEnd([]);
  });
  expect(written).toBe("\nNot run:\n  no server: install it\n    journal, broker\n  no git\n    demo\n\n");
});

test("counts skipped tests by file", () => {
  const written = reported((reporter) => {
    reporter.onTestRunEnd([
      aModule("test/a.test.ts", ["skipped", "passed"]),
      aModule("test/b.test.ts", ["passed"]),
    ]);
  });
  expect(written).toContain("  test/a.test.ts: 1 of 2 tests skipped\n");
  expect(written).not.toContain("test/b.test.ts");
});

test("is silent when everything ran", () => {
  expect(reported((reporter) => reporter.onTestRunEnd([aModule("test/a.test.ts", ["passed"])]))).toBe("");
});
