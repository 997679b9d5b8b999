// The order of test files. A file of minutes that begins last keeps one worker busy while the others have nothing left
// to do. vitest knows how long files take only where it has run before, and begins with the largest file elsewhere.

import { existsSync } from "node:fs";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files of more than 20 s, the longest first. Suites that mostly wait for servers come before those that compute, so
 *  that both kinds run side by side. The others follow in vitest's own order. */
const longest = [
  // npm run test:long
  "test/cli/swarm.test.ts",
  "test/dashboard/browser/pages.test.ts",
  "test/cli/demo.test.ts",
  "test/adapters/synadia.test.ts",
  "test/cli/broker-lifecycle.test.ts",
  "test/security/violations.test.ts",
  "test/dashboard/verb.test.ts",
  "test/adapters/nats-service.test.ts",
  "test/ground/three-newest.test.ts",
  "test/security/expired.test.ts",
  "test/adapters/mcp-server.test.ts",
  "test/ground/three-oldest.test.ts",
  "test/journal/nats-cluster.test.ts",
  "test/chaos/main.test.ts",
  "test/broker/start-and-stop.test.ts",
  "test/adapters/mcp-tool.test.ts",
  "test/adapters/a2a.test.ts",
  "test/dashboard/browser/markup.test.ts",
  "test/bench/scripts-help.test.ts",
  "test/ground/one-server.test.ts",
  // npm run test:searches
  "test/sim/fault/engine-versions.test.ts",
  "test/sim/fault/run-seed.test.ts",
  "test/scheduling/planner-oracle.test.ts",
  "test/cli/torture.test.ts",
  "test/zoo/zoo.test.ts",
  "test/sim/fault/world-end.test.ts",
  "test/sim/fault/verify-journals.test.ts",
  "test/sim/fault/replay-journals.test.ts",
  "test/sim/requirements.test.ts",
  // npm test
  "test/transport/unauthorized.test.ts",
  "test/security/walk.test.ts",
  "test/security/attacks.test.ts",
  "test/examples/examples.test.ts",
  "test/journal/nats.test.ts",
  "test/core/snapshot-property.test.ts",
  "test/requests/quick-checks.test.ts",
  "test/agent/quick-checks.test.ts",
  "test/cli/doctor.test.ts",
  "test/coordinator/journal-flood.test.ts",
  "test/core/turns-property.test.ts",
  "test/core/snapshot-damage.test.ts",
  "test/cli/live/terminal.test.ts",
  "test/sim/fault/jetstream.test.ts",
  "test/client/past-assignment.test.ts",
  "test/clients/python.test.ts",
  "test/scheduling/affinity-share.test.ts",
  "test/clients/conformance.test.ts",
  "test/cli/simulate.test.ts",
  "test/core/slots-property.test.ts",
  "test/dashboard/live.test.ts",
  "test/support/script-flags.test.ts",
  "test/coordinator/compacting/thread-base-maker.test.ts",
  "test/coordinator/large-answers.test.ts",
  "test/model/segments.test.ts",
  // npm run test:process
  "test/process/bases.test.ts",
  "test/process/agent-restarts.test.ts",
  "test/process/slots.test.ts",
  "test/process/kill-coordinator.test.ts",
  "test/process/holds.test.ts",
  "test/process/server-majority.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const gone = longest.filter((file) => !existsSync(`${root}/${file}`));
    if (gone.length > 0)
      throw new Error(`longest-first.ts names files that do not exist: ${gone.join(", ")}`);
    const rankByPath = new Map(longest.map((file, at) => [`${root}/${file}`, at]));
    const rank = ({ moduleId }: TestSpecification) => rankByPath.get(moduleId) ?? longest.length;
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
