// The bugs that the simulator must find. Each bug was made somewhere once, or is a likely slip of a hurried change.
// A bug behind a second guard has no place here: hundreds of seeds do not meet it. The model (test/model) and the tests
// of the part hold such guards.

import type { Mutant } from "./mutant.ts";

export const mutants: readonly Mutant[] = [
  // --- what an answer to an append proves -------------------------------------------------------------
  {
    name: "accepts-seq-0",
    breaks: "A false duplicate counts as an acknowledgement: a batch never stored counts as stored.",
    file: "src/journal/stream/append.ts",
    edits: [
      {
        find: "return positionIn(answer, expected.stream) === expected.position",
        replace: "return positionIn(answer, expected.stream) === expected.position || answer.seq === 0",
      },
    ],
  },
  {
    name: "takes-a-refusal-for-stored",
    breaks: "An append refused because its position is taken counts as stored.",
    file: "src/journal/stream/append.ts",
    edits: [
      {
        find: 'if (err_code === apiCodes.wrongLastSequence) return { kind: "refused" };',
        replace: 'if (err_code === apiCodes.wrongLastSequence) return { kind: "stored" };',
      },
    ],
  },
  {
    name: "takes-any-refusal-for-deposition",
    breaks: "A leader steps down after a lost acknowledgement, though no other coordinator leads.",
    file: "src/coordinator/leader/writer.ts",
    edits: [
      {
        find: '      case "refused":\n        return await this.#lookAtPosition(oldest);',
        replace: '      case "refused":\n        return this.#end(() => this.#events.onSealed());',
      },
    ],
  },
  {
    name: "takes-a-refused-batch-for-stored",
    breaks:
      "An acknowledgement of the second batch in flight counts for the first too, though a foreign record took its position.",
    file: "src/coordinator/leader/writer.ts",
    edits: [
      {
        find: '      case "refused":\n        return await this.#lookAtPosition(oldest);',
        replace:
          '      case "refused":\n        if (this.#sent[1]?.outcome?.kind === "stored") return this.#commit(oldest, oldest.sentMonotonicMs);\n        return await this.#lookAtPosition(oldest);',
      },
    ],
  },
  {
    name: "re-cuts-a-batch",
    breaks: "A batch of unknown fate is sent again with different bytes: both may be stored.",
    file: "src/coordinator/leader/writer.ts",
    edits: [
      {
        find: "    if (oldest !== undefined) this.#send(oldest);",
        replace:
          '    if (oldest === undefined) return;\n    (oldest.batch as { bytes: Uint8Array }).bytes = Buffer.concat([oldest.batch.bytes, Buffer.from(" ")]);\n    this.#send(oldest);',
      },
    ],
  },
  {
    name: "takes-not-found-for-landed",
    breaks: "After a refused append, a record that no reader finds in its position counts as stored.",
    file: "src/journal/inspect.ts",
    edits: [
      {
        find: 'if (found === undefined) return "nothing";',
        replace: 'if (found === undefined) return "itself";',
      },
    ],
  },
  {
    name: "takes-not-found-for-not-landed",
    breaks:
      "An unanswered append is replaced by a new batch if no reader finds the first, though the first may be stored.",
    file: "src/coordinator/leader/writer.ts",
    edits: [
      {
        find: "        const { cause } = outcome;\n",
        replace:
          '        const { cause } = outcome;\n        if ((await this.#find(oldest.batch)) === "nothing")\n          (oldest.batch as { bytes: Uint8Array }).bytes = Buffer.concat([oldest.batch.bytes, Buffer.from(" ")]);\n',
      },
    ],
  },
  {
    name: "goes-on-behind-a-lost-end",
    breaks: "A leader whose segment lost its end goes on writing at the new end.",
    file: "src/coordinator/leader/writer.ts",
    edits: [
      {
        find: "        this.#events.onSuspect();\n",
        replace:
          "        this.#position = (await this.#deps.segment.end().catch(() => undefined))?.position ?? this.#position;\n",
      },
    ],
  },

  // --- segments and bases ----------------------------------------------------------------------------------------
  {
    name: "opens-without-claiming",
    breaks: "A candidate ignores another coordinator's claim and opens the segment itself.",
    file: "src/journal/segment-writer.ts",
    edits: [
      {
        find: 'case "different":\n      case "rival":',
        replace:
          'case "rival":\n        this.#position = position;\n        return false;\n      case "different":',
      },
      { find: "if (claimant !== this.#options.session)", replace: "if (claimant === undefined)" },
    ],
  },
  {
    name: "leads-without-sealing",
    breaks: "A new leader leaves the live segment open, and the old leader goes on writing.",
    file: "src/coordinator/taking-lead/take-lead.ts",
    edits: [
      {
        find: "    await this.#deps.journal.segment(number).seal();\n",
        replace: "    await this.#deps.journal.segment(number).end();\n",
      },
    ],
  },
  {
    name: "leads-on-in-a-sealed-segment",
    breaks: "A leader stays leader after another coordinator seals its segment.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "    if (this.#isChanging || this.#hooks.isOver()) return;\n    this.#hooks.onDeposed();\n",
        replace: "",
      },
    ],
  },
  {
    name: "takes-sealed-for-stored",
    breaks: "An append to a sealed segment counts as stored.",
    file: "src/coordinator/leader/writer.ts",
    edits: [
      {
        find: "        return this.#end(() => this.#events.onSealed());\n",
        replace: "        return this.#commit(oldest, oldest.sentMonotonicMs);\n",
      },
    ],
  },
  {
    name: "opens-without-a-base",
    breaks: "A leader whose segment lost records goes on in the next segment without a base.",
    file: "src/coordinator/taking-lead/take-lead.ts",
    edits: [
      {
        find: "if (held !== undefined && this.#writing !== undefined) return { log: held, needsBase: true };",
        replace:
          "if (held !== undefined && this.#writing !== undefined) return { log: held, needsBase: false };",
      },
    ],
  },
  {
    name: "forgets-what-is-in-flight",
    breaks: "A leader that opens a new segment leaves its batches in flight out of the base.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: '    this.#log.continueAt(this.#inFlight.tail, this.#writer.position, "");\n    const writing',
        replace: "    const writing",
      },
    ],
  },
  {
    name: "uses-a-number-twice",
    breaks:
      "A candidate uses the number after the live segment, though another coordinator claimed the number.",
    file: "src/coordinator/taking-lead/take-lead.ts",
    edits: [
      {
        find: "    const number = this.#deps.seen.highest + 1;",
        replace: "    const number = (closed.live?.number ?? 0) + 1;",
      },
    ],
  },
  {
    name: "leaves-a-copy-out",
    breaks: "The next segment lacks a batch between base and `Opened`.",
    file: "src/coordinator/leader/segment-change.ts",
    edits: [
      {
        find: "for (let idx = copiedIdx + 1; idx <= tail.idx;",
        replace: "for (let idx = copiedIdx + 2; idx <= tail.idx;",
      },
    ],
  },
  {
    name: "removes-the-newest-base",
    breaks: "Retention removes the segment with the newest base, though every later segment continues it.",
    file: "src/coordinator/compacting/segment-retention.ts",
    edits: [
      { find: "  return Math.max(0, safe);", replace: "  return Math.max(0, safe < 0 ? 0 : newest + 1);" },
    ],
  },
  {
    name: "ignores-who-cannot-read",
    breaks: "A leader goes on in a segment after a standby reports the segment as unreadable.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "if (segment !== this.#live.number || this.#isChanging || isSoon) return;",
        replace: "if (segment > 0 || this.#isChanging || isSoon) return;",
      },
    ],
  },
  {
    name: "restores-a-record-too-far",
    breaks: "A coordinator that starts from a base skips the next record.",
    file: "src/journal/base.ts",
    edits: [
      { find: "replay.enter(live, base.position);", replace: "replay.enter(live, base.position + 1);" },
    ],
  },
  {
    name: "restores-without-failures",
    breaks: "A base forgets how often a task has failed: the task is retried too often.",
    file: "src/core/snapshot/tasks.ts",
    edits: [{ find: "      failures: row.failures,\n", replace: "      failures: 0 * row.failures,\n" }],
  },

  // --- leading ------------------------------------------------------------------------------------------
  {
    name: "answers-when-deposed",
    breaks: "A deposed leader answers for batches that were never committed.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "        onSealed: () => this.#deposed(),\n",
        replace:
          "        onSealed: () => {\n          for (const { entries } of this.#inFlight.takeAll(this.term)) this.#hooks.answer(entries);\n          this.#deposed();\n        },\n",
      },
    ],
  },
  {
    name: "answers-stale-when-deposed",
    breaks: "A deposed leader answers unrecorded results as stale, and the agents drop the results.",
    file: "src/coordinator/leader/commits.ts",
    edits: [
      {
        find: "        onSealed: () => this.#deposed(),\n",
        replace:
          '        onSealed: () => {\n          for (const held of this.#inFlight.takeAll(this.term)) {\n            const reports = held.entries.filter(({ commands }) => commands.some(({ type }) => type === "ReportResult"));\n            for (const { commands, replies } of reports) replies.splice(0, replies.length, ...commands.map(() => ({ kind: "stale" as const })));\n            this.#hooks.answer(reports);\n          }\n          this.#deposed();\n        },\n',
      },
    ],
  },
  {
    name: "hears-foreign-records",
    breaks: "A standby takes any record for a sign of life: a foreign writer prevents campaigns.",
    file: "src/coordinator/following/following.ts",
    edits: [
      {
        find: '        if (verdict.kind !== "applied") continue;',
        replace:
          '        if (verdict.kind !== "applied") {\n          this.#heard();\n          continue;\n        }',
      },
    ],
  },
  {
    name: "campaigns-too-late",
    breaks: "A standby waits fifteen times T before it replaces a silent leader.",
    file: "src/coordinator/following/following.ts",
    edits: [{ find: "this.#silenceMs = timeoutMs + (", replace: "this.#silenceMs = 15 * timeoutMs + (" }],
  },
  {
    name: "answers-before-the-commit",
    breaks: "Reads from a state ahead of the journal are answered before the commit.",
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
    breaks: "Agents receive assignments before the commit: the journal may never hold them.",
    file: "src/coordinator/leader/leader.ts",
    edits: [
      {
        find: "      take: (held) => this.commits.take(held),\n",
        replace:
          "      take: (held) => {\n        this.#dispatcher.outbox.perform(held.turn.effects, this.committed);\n        this.commits.take(held);\n      },\n",
      },
    ],
  },
  {
    name: "trusts-itself-for-ever",
    breaks: "A leader cut off for long still answers from its old state.",
    file: "src/coordinator/leader/leader-lease.ts",
    edits: [
      {
        find: "if (!journal.sharable) return true;",
        replace: "return true;",
      },
    ],
  },
  {
    name: "forgets-what-is-unconfirmed",
    breaks: "A new leader does not resend unconfirmed assignments of its predecessor.",
    file: "src/coordinator/leader/dispatcher.ts",
    edits: [
      {
        find: "[...unconfirmedAssignments(state), ...standingGrants(state)]",
        replace: "[] as ReturnType<typeof standingGrants>",
      },
    ],
  },
  {
    name: "jumps-with-the-wall-clock",
    breaks: "Journal time follows a wall clock set to a different day.",
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
    breaks: "A standby campaigns although another standby holds more of the journal.",
    file: "src/coordinator/announcements.ts",
    edits: [
      {
        find: "(this.#wait?.times ?? 0) < limits.announcementWaitsMax",
        replace: "(this.#wait?.times ?? 0) < 0 * limits.announcementWaitsMax",
      },
    ],
  },
  {
    name: "hides-a-change-of-leader",
    breaks:
      "A project's pages leave out the changes of leader: the history of a task ends with a false loss.",
    file: "src/audit/reading/audit-reader.ts",
    edits: [
      {
        find: '["AssignmentsConfirmed", "TermStarted"]',
        replace: '["AssignmentsConfirmed"]',
      },
    ],
  },
  {
    name: "leads-on-unheard",
    breaks: "An unreachable leader renews its term, and no standby can take over.",
    file: "src/coordinator/leader/isolation.ts",
    edits: [{ find: "if (isLate || !isIsolated) {", replace: "if (isLate || !isIsolated || term() > 0) {" }],
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
    breaks: "An agent not yet heard by a new leader counts as silent for H.",
    file: "src/requests/presence.ts",
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
    breaks: "After three lost heartbeats an agent and its attempts count as lost.",
    file: "src/requests/presence.ts",
    edits: [
      {
        find: "if (silentMs > limits.agentLostMs) {",
        replace: "if (silentMs > limits.unresponsiveSilenceMs) {",
      },
    ],
  },
  {
    name: "loses-agents-too-late",
    breaks: "A dead agent keeps its attempts for six times H.",
    file: "src/requests/presence.ts",
    edits: [
      {
        find: "if (silentMs > limits.agentLostMs) {",
        replace: "if (silentMs > 6 * limits.agentLostMs) {",
      },
    ],
  },
  {
    name: "never-sends-again",
    breaks: "An assignment lost on the wire is never sent again.",
    file: "src/requests/presence.ts",
    edits: [
      {
        find: "if (seen >= dueNumber) return [];",
        replace: "if (seen >= 0 * dueNumber) return [];",
      },
    ],
  },
  {
    name: "frees-capacity-at-the-time-out",
    breaks:
      "A timed-out attempt that still runs does not count: its agent gets more tasks than its capacity.",
    file: "src/core/decide-attempt.ts",
    edits: [
      {
        find: "const revoked = hasEnded ? {} : ({ revoked: true } as const);",
        replace: "const revoked: { revoked?: true } = {};\n  void hasEnded;",
      },
    ],
  },
  {
    name: "frees-capacity-twice",
    breaks: "Capacity is freed when an attempt times out, and again when the late result arrives.",
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
    breaks: "A late result is acknowledged as counted, though the task was assigned to another agent.",
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
    breaks: "A task limited to one attempt may run twice.",
    file: "src/core/retry.ts",
    edits: [
      { find: "row.failures + 1 >= row.spec.maxAttempts", replace: "row.failures >= row.spec.maxAttempts" },
    ],
  },
  {
    name: "fences-the-newest",
    breaks: "A repeated or late join of an earlier session ends the session that began after it.",
    file: "src/core/decide-agent.ts",
    edits: [
      {
        find: "row?.fencedIncarnations.includes(command.incarnation) === true",
        replace: "row !== undefined && row.fencedIncarnations.length < 0",
      },
      {
        find: "row !== undefined && row.incarnation !== command.after",
        replace: "row !== undefined && row.incarnation.length < 0",
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
        find: "ledger.reserved += tokens;",
        replace: "ledger.reserved += 2 * tokens;",
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
    breaks: "A leader that started from a snapshot does not end tasks at their deadlines.",
    file: "src/core/snapshot/tasks.ts",
    edits: [
      {
        find: 'row.deadlineTimer = this.#timers.start(deadline, { kind: "deadline", task: row });',
        replace: "void deadline.order;",
      },
    ],
  },

  // --- grants -------------------------------------------------------------------------------------------
  {
    name: "keeps-the-bounds-of-a-grant",
    breaks: "A narrower grant keeps its former bounds: agents go on with what the new grant excludes.",
    file: "src/state/grant.ts",
    edits: [
      {
        find: "    else byGroup.set(group, grant);\n",
        replace: "    else byGroup.set(group, { ...grant, ...byGroup.get(group) });\n",
      },
    ],
  },
  {
    name: "bounds-only-joins",
    breaks: "A session beyond a narrower grant goes on.",
    file: "src/core/decide-grant.ts",
    edits: [
      { find: "row.group === group && isBeyond(", replace: "row.group === group && at < 0 && isBeyond(" },
    ],
  },
  {
    name: "lets-the-undeclared-stay",
    breaks: "Agents of groups without a grant go on where agents must be declared.",
    file: "src/core/decide-settings.ts",
    edits: [
      {
        find: 'if (policy.agents !== "declared") return configured;',
        replace: "if (configured.events.length >= 0) return configured;",
      },
    ],
  },

  // --- submitting ---------------------------------------------------------------------------------------
  {
    name: "cancels-in-word-only",
    breaks: "A cancelled running task goes on, and ends as completed.",
    file: "src/core/decide.ts",
    edits: [
      {
        find: '    events: [{ type: "TaskCancelled", project, task, reason: "requested" }],',
        replace:
          '    events: known.open === undefined ? [{ type: "TaskCancelled", project, task, reason: "requested" }] : [],',
      },
    ],
  },
  {
    name: "takes-a-conflict-for-a-duplicate",
    breaks: "A different task under a used id is acknowledged, and never runs.",
    file: "src/core/decide.ts",
    edits: [
      {
        find: 'if (known.hash !== hash) return answered({ kind: "conflict", task: task.id });',
        replace: "",
      },
    ],
  },

  // --- the agent's side ---------------------------------------------------------------------------------
  {
    name: "starts-an-attempt-again",
    breaks: "An assignment resent after the answer to its result runs again.",
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
    breaks: "A result with a lost answer is not sent again.",
    file: "src/agent/result-outbox.ts",
    edits: [
      {
        find: 'const left = answer.kind === "answered" ? this.#settle(waiting, answer.value) : waiting;',
        replace: 'const left = answer.kind === "answered" ? this.#settle(waiting, answer.value) : [];',
      },
    ],
  },
  {
    name: "stalls-what-waits",
    breaks: "A prefetched attempt is revoked as stalled while it waits for capacity, and may start anyway.",
    file: "src/requests/presence.ts",
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
    breaks: "An isolated agent goes on running tasks already assigned to other agents.",
    file: "src/agent/lease-watch.ts",
    edits: [
      {
        find: "return this.#deps.leaseTtlMs() * (1 - limits.leaseAbortShare);",
        replace: "return 1e9 + 0 * this.#deps.leaseTtlMs() * limits.leaseAbortShare;",
      },
    ],
  },
  {
    name: "holds-nothing-back",
    breaks: "An agent lists only running attempts: an attempt with an unanswered result counts as lost.",
    file: "src/agent/attempt-ledger.ts",
    edits: [
      {
        find: "return [...this.#heldByKey.values()];",
        replace: "return [...this.#heldByKey.values()].filter(({ isRunning }) => isRunning);",
      },
    ],
  },

  // --- the client's side --------------------------------------------------------------------------------
  {
    name: "calls-the-unknown-refused",
    breaks: "A submit with an unknown outcome is reported as refused.",
    file: "src/client/submit-queue.ts",
    edits: [
      {
        find: 'else if (answer.code === "WAGGLE_OUTCOME_UNKNOWN") submission.doubted(answer.message);',
        replace: "",
      },
      {
        find: "        for (const submission of message) submission.doubted(answer.why);\n        this.#sendAgain(message);\n        if (!isHurried) this.#pause();",
        replace: '        for (const submission of message) submission.refuse(new Error("not accepted"));',
      },
    ],
  },
];
