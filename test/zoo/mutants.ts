// The bugs that the simulator must find. Each was made somewhere once, or is what a hurried change would look like.

import type { Mutant } from "./mutant.ts";

export const mutants: readonly Mutant[] = [
  // --- what an answer to an append proves -------------------------------------------------------------
  {
    name: "accepts-seq-0",
    breaks: "A false duplicate counts as an acknowledgement: what was never stored is said to be.",
    file: "src/journal/stream/append.ts",
    edits: [
      {
        find: "answer.seq === expected.seq && answer.stream === expected.stream && answer.duplicate !== true",
        replace: "(answer.seq === expected.seq || answer.seq === 0) && answer.stream === expected.stream",
      },
    ],
  },
  {
    name: "takes-a-refusal-for-stored",
    breaks: "An append that was refused for what stands there counts as stored.",
    file: "src/journal/stream/append.ts",
    edits: [
      {
        find: 'if (err_code === WRONG_LAST_SEQUENCE) return { kind: "refused" };',
        replace: 'return { kind: "stored", seq: 0 };',
      },
    ],
  },
  {
    name: "takes-any-refusal-for-deposition",
    breaks: "A leader whose acknowledgement was lost steps down, though nobody else leads.",
    file: "src/coordinator/append/committer.ts",
    edits: [
      {
        find: '    this.#isResolving = true;\n    if (outcome.kind === "full")',
        replace:
          '    this.#isResolving = true;\n    if (outcome.kind === "refused") return this.#depose();\n    if (outcome.kind === "full")',
      },
    ],
  },
  {
    name: "takes-a-refused-batch-for-stored",
    breaks:
      "The second batch in flight was acknowledged, so the first is believed to stand: a rival's stands there.",
    file: "src/coordinator/append/committer.ts",
    edits: [
      {
        find: '    this.#isResolving = true;\n    if (outcome.kind === "full")',
        replace:
          '    if (outcome.kind === "refused" && this.#sends.newest !== oldest && this.#sends.newest?.storedSeq !== undefined) {\n      oldest.storedSeq = oldest.expectedSeq + 1;\n      return this.#commitPrefix();\n    }\n    this.#isResolving = true;\n    if (outcome.kind === "full")',
      },
    ],
  },
  {
    name: "re-cuts-a-batch",
    breaks: "A batch of unknown fate is sent again with other bytes: both may stand.",
    file: "src/coordinator/append/sends.ts",
    edits: [
      {
        find: "      entry.isHeldBack = true;\n",
        replace:
          '      entry.isHeldBack = true;\n      (entry.batch as { bytes: Uint8Array }).bytes = Buffer.concat([entry.batch.bytes, Buffer.from(" ")]);\n',
      },
    ],
  },
  {
    name: "takes-not-found-for-landed",
    breaks: "An append was refused, and what a reader does not find in its place counts as stored.",
    file: "src/coordinator/append/expected-place.ts",
    edits: [
      {
        find: '        return seq === oldest.expectedSeq + 1 ? await this.#refill() : { kind: "free", mayChange: false };',
        replace: '        return { kind: "ours", seq };',
      },
    ],
  },
  {
    name: "takes-not-found-for-not-landed",
    breaks:
      "An append was not answered, and what a reader does not find counts as never stored: the batch is cut anew, and the first may stand.",
    file: "src/coordinator/append/committer.ts",
    edits: [
      {
        find: "    this.#clock = clock;\n",
        replace: "    this.#clock = clock;\n    this.asked = journal;\n",
      },
      {
        find: "  readonly #clock: Clock;\n",
        replace: '  readonly #clock: Clock;\n  asked: CommitterDeps["journal"];\n',
      },
      {
        find: '      else if (outcome.kind !== "stored")\n        await this.#pause(outcome.kind === "full" ? limits.journalFullRetryMs : limits.appendRetryMs);\n',
        replace:
          '      else if (outcome.kind !== "stored") {\n        if (outcome.kind !== "full" && (await this.asked.read(oldest.expectedSeq + 1)) === undefined)\n          (oldest.batch as { bytes: Uint8Array }).bytes = Buffer.concat([oldest.batch.bytes, Buffer.from(" ")]);\n        await this.#pause(outcome.kind === "full" ? limits.journalFullRetryMs : limits.appendRetryMs);\n      }\n',
      },
    ],
  },

  {
    name: "trusts-by-a-second-sending",
    breaks:
      "A batch that was found stored after it was sent again proves as much as if it had been stored just now.",
    file: "src/coordinator/append/committer.ts",
    edits: [
      {
        find: "oldest.sentMonotonicMs = oldest.firstSentMonotonicMs ?? oldest.sentMonotonicMs;",
        replace: "",
      },
    ],
  },
  {
    name: "goes-on-behind-a-lost-end",
    breaks: "A leader whose journal lost its end writes on where the log ends now.",
    file: "src/coordinator/append/expected-place.ts",
    edits: [
      {
        find: "    const refilled = await this.#deps.refill.run();\n",
        replace:
          '    this.#deps.end.goOnBehind((await this.#deps.journal.position()).lastSeq);\n    if (this.#deps.end.lastSeq >= 0) return { kind: "free", mayChange: false };\n    const refilled = await this.#deps.refill.run();\n',
      },
    ],
  },
  {
    name: "saves-behind-anothers-line",
    breaks:
      "Whoever misses the journal's end saves its state as what stands for that, though another has gone on there.",
    file: "src/coordinator/repair/line-end.ts",
    edits: [
      {
        find: 'return behind.some((each) => goesOn(each, tail)) ? "another" : "ours";',
        replace: 'return "ours";',
      },
      {
        find: '    if (!mayReplace && folded.places.idxAt(seq) !== undefined) return "another";\n',
        replace: "",
      },
      {
        find: 'if (!mayReplace || behind.length > 0) return "another";',
        replace: 'if (behind.length > 0) return "ours";',
      },
    ],
  },
  {
    name: "purges-what-took-its-place",
    breaks: "A purge takes what was written in the place of the end that the journal lost meanwhile.",
    file: "src/coordinator/compaction/purge.ts",
    edits: [
      {
        find: "      if (firstSeq < seq && !(await isStanding(firstIdx, places, journal))) throw new Error(replaced);\n      if (signal.aborted || this.#keptFromSeq(firstIdx) !== seq) return; // the journal lost its end meanwhile\n",
        replace: "",
      },
    ],
  },
  {
    name: "gives-up-a-lost-end",
    breaks:
      "Who alone holds an end that the journal lost ends where a stale server does not find what stands before it.",
    file: "src/coordinator/standby/follower.ts",
    edits: [
      {
        find: "if (this.#unprovenEnd.isBelieved()) return this.#hooks.onHalted(lost);",
        replace: "if (this.#unprovenEnd !== undefined) return this.#hooks.onHalted(lost);",
      },
    ],
  },

  // --- the chain ----------------------------------------------------------------------------------------
  {
    name: "skips-the-hash-check",
    breaks: "A deposed leader's second batch that landed behind a rival's record is applied.",
    file: "src/journal/replay.ts",
    edits: [{ find: "batch.prev !== tail.hash || batch.idx", replace: "batch.idx" }],
  },

  {
    name: "restores-a-record-too-far",
    breaks: "Whoever starts from a snapshot skips the record behind it.",
    file: "src/journal/snapshot/read.ts",
    edits: [
      {
        find: "return new Replay({ state, position, lastEventType,",
        replace:
          "return new Replay({ state, position: { ...position, seq: position.seq + 1 }, lastEventType,",
      },
    ],
  },
  {
    name: "restores-without-failures",
    breaks: "A snapshot forgets how often a task has failed: it is tried more often than it may be.",
    file: "src/core/snapshot/tasks.ts",
    edits: [{ find: "      failures: row.failures,\n", replace: "      failures: 0 * row.failures,\n" }],
  },

  // --- leading ------------------------------------------------------------------------------------------
  {
    name: "answers-before-the-commit",
    breaks: "What was only read from a state that runs ahead of the journal is said at once.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "if (newest !== undefined) newest.entries.push(...held.entries);\n    else this.#hooks.answer",
        replace: "void newest;\n    this.#hooks.answer",
      },
    ],
  },
  {
    name: "acts-before-the-commit",
    breaks: "Agents are told of assignments that may never stand in the journal.",
    file: "src/coordinator/leader/leader.ts",
    edits: [
      {
        find: "      take: (held) => this.#commits.take(held),\n",
        replace:
          "      take: (held) => {\n        this.#telling.outbox.perform(held.turn.effects, this.committed);\n        this.#commits.take(held);\n      },\n",
      },
    ],
  },
  {
    name: "answers-when-deposed",
    breaks: "A deposed leader answers for batches that never came to be.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "      onDeposed: () => this.#hooks.onDeposed(),\n",
        replace:
          "      onDeposed: () => {\n        this.#hooks.onDeposed();\n        for (let held; (held = this.#inFlight.take(this.committed)) !== undefined; ) this.#hooks.answer(held.entries);\n      },\n",
      },
    ],
  },
  {
    name: "answers-stale-when-deposed",
    breaks:
      "A deposed leader calls the results stale that it could not record: their agents throw them away.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "      onDeposed: () => this.#hooks.onDeposed(),\n",
        replace:
          '      onDeposed: () => {\n        this.#hooks.onDeposed();\n        for (let held; (held = this.#inFlight.take(this.committed)) !== undefined; ) {\n          const reports = held.entries.filter(({ commands }) => commands.some(({ type }) => type === "ReportResult"));\n          for (const { commands, replies } of reports) replies.splice(0, replies.length, ...commands.map(() => ({ kind: "stale" as const })));\n          this.#hooks.answer(reports);\n        }\n      },\n',
      },
    ],
  },
  {
    name: "trusts-itself-for-ever",
    breaks: "A leader that was cut off for long answers from what it last knew.",
    file: "src/coordinator/leader/trust.ts",
    edits: [
      {
        find: "if (!journal.sharable) return true;",
        replace: "return true;",
      },
    ],
  },
  {
    name: "forgets-what-is-unconfirmed",
    breaks: "A new leader does not send again what its predecessor's agents may never have got.",
    file: "src/coordinator/leader/telling.ts",
    edits: [
      {
        find: "[...unconfirmedAssignments(state), ...standingGrants(state)]",
        replace: "[] as ReturnType<typeof standingGrants>",
      },
    ],
  },
  {
    name: "jumps-with-the-wall-clock",
    breaks: "Journal time follows a wall clock that was set to another day.",
    file: "src/coordinator/leader/journal-clock.ts",
    edits: [
      {
        find: "this.#at += elapsedMs + this.#slewMs(elapsedMs);",
        replace: "this.#at = Math.max(this.#at, this.#clock.now()) + 0 * this.#slewMs(elapsedMs);",
      },
    ],
  },

  {
    name: "campaigns-below-others",
    breaks: "A standby that holds less of the journal than another one takes the lead.",
    file: "src/coordinator/announcements.ts",
    edits: [
      {
        find: "(this.#wait?.times ?? 0) < limits.announcementWaitsMax",
        replace: "(this.#wait?.times ?? 0) < 0 * limits.announcementWaitsMax",
      },
    ],
  },
  {
    name: "hears-dead-records",
    breaks:
      "A standby takes any record for a sign of life: whoever writes into the journal keeps it from leading.",
    file: "src/coordinator/standby/standby.ts",
    edits: [
      {
        find: 'if (verdict.kind === "dead") continue;',
        replace: 'if (verdict.kind === "dead") {\n          this.#heard();\n          continue;\n        }',
      },
    ],
  },
  {
    name: "waits-for-a-dead-reader",
    breaks: "A standby reads on where a server serves its reader no longer, and stands by for ever.",
    file: "src/coordinator/standby/standby.ts",
    edits: [
      {
        find: "now - this.#stuck.sinceMonotonicMs < limits.standbyStuckMs) return;",
        replace: "now - this.#stuck.sinceMonotonicMs < 1e9 * limits.standbyStuckMs) return;",
      },
    ],
  },
  {
    name: "leads-on-unheard",
    breaks: "A leader that nobody can reach renews its term, and keeps everybody else from leading.",
    file: "src/coordinator/leader/deafness.ts",
    edits: [{ find: "if (isLate || !isDeaf) {", replace: "if (isLate || !isDeaf || term > 0) {" }],
  },
  {
    name: "believes-two-looks",
    breaks: "A coordinator that starts takes for lost what it missed before and after a server was away.",
    file: "src/coordinator/standby/catch-up.ts",
    edits: [
      {
        find: "lossEndurance(clock, ms, journal.sharable)",
        replace: "new Endurance(clock, journal.sharable ? ms : 0)",
      },
    ],
  },
  {
    name: "compares-the-last-record-alone",
    breaks:
      "A standby leads behind dead records in the place of one of which the leader's last batch stands.",
    file: "src/journal/refill.ts",
    edits: [
      {
        find: "next < untilSeq; next += limits.deadComparedAtOnce",
        replace: "next < untilSeq * 0; next += limits.deadComparedAtOnce",
      },
    ],
  },
  {
    name: "waits-for-what-was-purged",
    breaks: "A former leader whose batches were purged by who leads now waits for them for ever.",
    file: "src/journal/refill.ts",
    edits: [
      {
        find: 'if (firstSeq > untilSeq + 1) return { kind: "purged" };',
        replace: 'if (firstSeq > untilSeq + 1) return { kind: "whole", lastSeq };',
      },
    ],
  },
  {
    name: "campaigns-too-late",
    breaks: "A standby lets a dead leader be silent for fifteen times T before it campaigns.",
    file: "src/coordinator/standby/standby.ts",
    edits: [
      {
        find: "this.#silenceMs = timeoutMs + (",
        replace: "this.#silenceMs = 15 * timeoutMs + (",
      },
    ],
  },
  {
    name: "forgets-by-a-false-clock",
    breaks: "A coordinator that starts with a wall clock a day ahead forgets which tasks have ended.",
    file: "src/state/journal-time.ts",
    edits: [
      {
        find: 'const wasLed = first.type !== "TermStarted" || state.term === 0;',
        replace: "const wasLed = first.type !== undefined;",
      },
    ],
  },

  // --- agents, as the leader sees them ------------------------------------------------------------------
  {
    name: "expires-agents-at-fail-over",
    breaks: "Whoever a new leader has not heard yet counts as silent for H.",
    file: "src/coordinator/leader/presence.ts",
    edits: [
      {
        find: "const silentMs = now - presence.heardMonotonicMs;",
        replace: "const silentMs = known === undefined ? Infinity : now - presence.heardMonotonicMs;",
      },
      {
        find: "if (agent.online) this.heard(agent.id, agent.incarnation);",
        replace: "void agent;",
      },
    ],
  },
  {
    name: "loses-agents-too-soon",
    breaks: "Three lost heartbeats lose an agent and all it runs.",
    file: "src/coordinator/leader/presence.ts",
    edits: [
      {
        find: "if (silentMs > limits.agentLostMs) {",
        replace: "if (silentMs > limits.unresponsiveSilenceMs) {",
      },
    ],
  },
  {
    name: "loses-agents-too-late",
    breaks: "A dead agent keeps what it ran for six times H.",
    file: "src/coordinator/leader/presence.ts",
    edits: [
      {
        find: "if (silentMs > limits.agentLostMs) {",
        replace: "if (silentMs > 6 * limits.agentLostMs) {",
      },
    ],
  },
  {
    name: "never-sends-again",
    breaks: "An assignment that was lost on the wire stays lost.",
    file: "src/coordinator/leader/presence.ts",
    edits: [
      {
        find: "if (seen >= dueNumber) return [];",
        replace: "if (seen >= 0 * dueNumber) return [];",
      },
    ],
  },
  {
    name: "frees-a-place-at-the-time-out",
    breaks:
      "A timed-out attempt that still runs no longer counts: its agent is given more than it has places.",
    file: "src/core/decide-attempt.ts",
    edits: [
      {
        find: "const revoked = hasEnded ? {} : ({ revoked: true } as const);",
        replace: "const revoked: { revoked?: true } = {};\n  void hasEnded;",
      },
    ],
  },
  {
    name: "frees-a-place-twice",
    breaks:
      "A place is free when its attempt times out, and free once more when the late result confirms that.",
    file: "src/state/agent-rows.ts",
    edits: [
      {
        find: 'if (isRevoked) attempt.state = "revoked";',
        replace:
          'if (isRevoked) {\n    attempt.state = "revoked";\n    agent.maxConcurrent += 1;\n    for (const row of agent.kindRows) row.tick += 1;\n  }',
      },
    ],
  },
  {
    name: "says-ok-to-a-late-result",
    breaks: "The result of an attempt that was given to somebody else is acknowledged as if it counted.",
    file: "src/core/decide-attempt.ts",
    edits: [
      {
        find: 'return attempt <= row.attempt ? { kind: "stale" } : { kind: "gone" };',
        replace: 'return attempt <= row.attempt ? { kind: "ok" } : { kind: "gone" };',
      },
    ],
  },
  {
    name: "one-attempt-too-many",
    breaks: "A task that may run once may run twice.",
    file: "src/core/retry.ts",
    edits: [
      { find: "row.failures + 1 >= row.spec.maxAttempts", replace: "row.failures >= row.spec.maxAttempts" },
    ],
  },

  {
    name: "fences-the-later",
    breaks:
      "A fenced process whose join was not answered asks again, and fences the one that was started later.",
    file: "src/core/decide-agent.ts",
    edits: [
      {
        find: "row?.fencedLives.includes(command.incarnation) === true",
        replace: "false",
      },
    ],
  },

  // --- what is counted ----------------------------------------------------------------------------------
  {
    name: "reserves-twice",
    breaks: "A reservation of tokens is counted twice and returned once.",
    file: "src/state/budget-rows.ts",
    edits: [
      {
        find: "owner.ledger.reserved += attempt.tokensReserved;",
        replace: "owner.ledger.reserved += 2 * attempt.tokensReserved;",
      },
    ],
  },
  {
    name: "gives-a-slot-back-twice",
    breaks: "A released slot is free twice.",
    file: "src/state/slot-rows.ts",
    edits: [
      { find: "  row.inUse -= count;\n", replace: "  row.inUse = Math.max(0, row.inUse - 2 * count);\n" },
    ],
  },
  {
    name: "forgets-to-stop-a-timer",
    breaks: "An attempt that has ended times out.",
    file: "src/state/agent-rows.ts",
    edits: [
      {
        find: "if (attempt.timeoutTimer !== undefined) stopTimer(state, attempt.timeoutTimer);",
        replace: "",
      },
    ],
  },

  {
    name: "forgets-a-timer-at-fail-over",
    breaks: "Whoever leads after it began at a snapshot does not end tasks at their deadlines.",
    file: "src/core/snapshot/tasks.ts",
    edits: [
      {
        find: 'row.deadlineTimer = this.#timers.start(deadline, { kind: "deadline", task: row });',
        replace: "void deadline.order;",
      },
    ],
  },

  // --- submitting ---------------------------------------------------------------------------------------
  {
    name: "takes-a-conflict-for-a-duplicate",
    breaks: "Another task under a used id is acknowledged, and never runs.",
    file: "src/core/decide.ts",
    edits: [
      {
        find: 'if (known.hash !== hash) return answered({ kind: "conflict", task: task.id });',
        replace: "",
      },
    ],
  },
  {
    name: "cancels-in-word-only",
    breaks: "A cancelled task that runs goes on, and ends completed.",
    file: "src/core/decide.ts",
    edits: [
      {
        find: '    events: [{ type: "TaskCancelled", project, task, reason: "requested" }],',
        replace:
          '    events: known.open === undefined ? [{ type: "TaskCancelled", project, task, reason: "requested" }] : [],',
      },
    ],
  },

  // --- the agent's side ---------------------------------------------------------------------------------
  {
    name: "starts-an-attempt-again",
    breaks: "An assignment that is sent again after its result was answered runs again.",
    file: "src/agent/attempt-ledger.ts",
    edits: [
      {
        find: "if (number <= this.#seen || this.#ahead.has(number)) return false;",
        replace: "",
      },
    ],
  },
  {
    name: "drops-an-unanswered-result",
    breaks: "A result whose answer was lost is not sent again.",
    file: "src/agent/result-outbox.ts",
    edits: [
      {
        find: 'const left = answer.kind === "answered" ? this.#settle(batch, answer.value) : batch;',
        replace: 'const left = answer.kind === "answered" ? this.#settle(batch, answer.value) : [];',
      },
    ],
  },
  {
    name: "stalls-what-waits",
    breaks:
      "A prefetched attempt is taken back as stalled while it waits for a place, and may start all the same.",
    file: "src/coordinator/leader/presence.ts",
    edits: [
      {
        find: "if (placed > agent.maxConcurrent) break;",
        replace: "if (placed > 1e9) break;",
      },
      {
        find: "waitsMs < limits.stallWaitMs",
        replace: "waitsMs < 0",
      },
    ],
  },
  {
    name: "outlives-its-lease",
    breaks: "An agent that is cut off runs on beside whoever was given its tasks.",
    file: "src/agent/lease-watch.ts",
    edits: [
      {
        find: "return this.#deps.leaseTtlMs() * (1 - limits.leaseAbortShare);",
        replace: "return 1e9 + 0 * this.#deps.leaseTtlMs() * limits.leaseAbortShare;",
      },
    ],
  },
  {
    name: "assigns-to-the-silent",
    breaks: "An assignment that was on its way for long begins just before its agent is given up.",
    file: "src/coordinator/leader/outbox.ts",
    edits: [
      {
        find: "const isSilent = this.#presences.isSilent(agent, incarnation);",
        replace: "const isSilent = this.#presences.isSilent(agent, incarnation) && term < 0;",
      },
    ],
  },
  {
    name: "re-joins-when-fenced",
    breaks: "Two processes of one id take the swarm's attempts from each other for ever.",
    file: "src/agent/signals.ts",
    edits: [
      {
        find: 'if (code === "WAGGLE_FENCED") return { type: "FENCED" };',
        replace: 'if (code === "WAGGLE_FENCED") return { type: "LAPSED", why: "another process joined" };',
      },
    ],
  },

  {
    name: "holds-nothing-back",
    breaks: "An agent lists only attempts that run: one whose result is on its way counts as lost.",
    file: "src/agent/attempt-ledger.ts",
    edits: [
      {
        find: "return [...this.#heldByName.values()];",
        replace: "return [...this.#heldByName.values()].filter(({ isRunning }) => isRunning);",
      },
    ],
  },

  // --- the client's side --------------------------------------------------------------------------------
  {
    name: "settles-doubt-unread",
    breaks:
      "A submit that was refused unread is reported as refused, though an earlier attempt brought it in.",
    file: "src/client/submission.ts",
    edits: [{ find: "if (isKnownNew) this.#doubt = undefined;", replace: "this.#doubt = undefined;" }],
  },
  {
    name: "calls-the-unknown-refused",
    breaks: "A submit whose fate nobody knows is reported as refused.",
    file: "src/client/submit-lane.ts",
    edits: [
      {
        find: 'else if (answer.code === "WAGGLE_OUTCOME_UNKNOWN") submission.doubted(answer.message);',
        replace: "",
      },
      {
        find: "        for (const submission of message) submission.doubted(answer.why);\n        this.#sendAgain(message);\n        if (!hurry.aborted) this.#pause();",
        replace:
          '        for (const submission of message) submission.refuse(new UnreachableError("not accepted"));',
      },
    ],
  },
];
