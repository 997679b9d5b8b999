// Every bound of the system in one place: the name ends in the unit, the comment gives the reason, and assertions at
// the end check the relations between bounds.

import { assert } from "./assert.ts";

export const limits = {
  // --- messages -------------------------------------------------------------------------------
  /** A task's payload and its result, each. Configurable up to a quarter of the server's max payload. */
  payloadBytesMax: 256 * 1024,
  /** Deeper JSON overflows the stack of `JSON.stringify`; nothing we carry needs more. */
  jsonDepthMax: 64,
  /** Tasks, results or ids in one request: bounds the size of an answer and of a turn. */
  itemsPerMessageMax: 1024,
  /** Characters of an error message that is kept with an attempt; the rest is in the agent's log. */
  errorCharactersMax: 1024,
  /** Maximum length of a swarm, project or agent id: a token of a subject (the patterns stand in ids.ts). */
  subjectTokenCharactersMax: 64,
  /** Problems of one value in an error: an array of a thousand wrong items is one mistake. */
  issuesShownMax: 5,
  /** Warnings that one connection remembers as logged; beyond, a warning may be logged again. */
  warningsLoggedMax: 1_024,
  /** Path of the wrong field in an error: the path may contain the sender's text. */
  errorFieldCharactersMax: 200,
  /** Length of a coordinator's id. */
  coordinatorIdCharactersMax: 128,
  /** Labels of an agent, and characters of each value. */
  labelsMax: 32,
  labelCharactersMax: 128,
  /** Labels that a task may need, and accepted values of each… */
  needsMax: 16,
  needValuesMax: 16,
  /** …and all of them as JSON: each queue has its needs in its name. */
  needsBytesMax: 2 * 1024,
  /** A task's attributes as JSON: every message and event with the task carries them. */
  attributesBytesMax: 4 * 1024,
  /** Kinds of one agent. */
  kindsPerAgentMax: 256,
  /** Maximum message size of a server with default configuration, development broker included. */
  maxPayloadBytesDefault: 1024 * 1024,

  // --- the wire -------------------------------------------------------------------------------
  /** Time for the first connect and for each reconnect: a server that accepts TCP and sends nothing counts as away. */
  connectTimeoutMs: 5_000,
  /** Pause before a reconnect: short at first, for a server that restarts; then doubled, for a server that stays away.
   */
  reconnectMs: 50,
  reconnectMsMax: 2_000,
  /** Interval of a client's pings to the server, and maximum number of open pings. A client leaves a stopped or
   *  unreachable server within `clientPingMs * (clientPingsMax + 1)`. It tries the same server once, for at most
   *  `connectTimeoutMs`, and then another. The sum is less than the time after which an agent is lost. */
  clientPingMs: 1_200,
  clientPingsMax: 2,
  /** Total size of messages that are kept while reconnecting; further messages are lost, as on any broken connection.
   */
  keptPublishBytesMax: 8 * 1024 ** 2,
  /** Queued bytes that a connection writes at once. Fewer bytes wait for the end of the step, so that all messages of a
   *  full turn leave in one write: a write costs more than its bytes. */
  writeBytesMin: 1024 * 1024,
  /** Time that `close` waits for the server to take queued messages. */
  closeFlushMs: 2_000,
  /** Interval of the check for expired requests; time-outs may be late by one interval. */
  requestTimeoutGrainMs: 10,
  /** Subjects a routing table remembers the receivers of; all are forgotten when one more would not fit. */
  subjectCacheMax: 8_192,
  /** Longest prefix of a subject that a routing table remembers: a subject may fill a line of the protocol. */
  subjectCachedCharactersMax: 512,

  // --- development broker and its life --------------------------------------------------------
  /** Longest protocol line, as in nats-server: bounds an unfinished line. */
  controlLineBytesMax: 4_096,
  /** Output that waits for one client; a slower client is disconnected, as by nats-server. */
  brokerPendingBytesMax: 64 * 1024 ** 2,
  /** Beyond this size the broker stops reading from publishers to the slow client, until the client has caught up or…
   */
  brokerStallBytes: 8 * 1024 ** 2,
  /** …some time has passed: a client that never reads must not stop the publishers. */
  brokerStallMs: 10,
  brokerConnectionsMax: 16_384,
  brokerSubscriptionsMax: 65_536,
  /** Time for a client to send CONNECT before it is disconnected. */
  brokerConnectMs: 2_000,
  brokerPingMs: 20_000,
  brokerPingsMax: 2,
  /** Time for a broker to send INFO before it counts as silent. */
  brokerAnswerMs: 3_000,
  /** Time from the spawn of a broker, by any process, to the first answer. */
  brokerStartMs: 20_000,
  /** Time from the stop request to a broker until it is killed. */
  brokerStopMs: 5_000,
  /** Time without connection until a coordinator checks the data folder's broker, and restarts an ended broker… */
  brokerAwayMs: 250,
  /** …and checks again after doubled pauses, so that a broker that ends at once is not restarted in a loop… */
  brokerRestartMsMax: 30_000,
  /** …until a connection to the broker has lasted. */
  brokerSteadyMs: 10_000,

  // --- the coordinator's turn -----------------------------------------------------------------
  /** A turn accepts no further command beyond this size; one command adds at most `batchBytesMax`. */
  turnBytesMax: 256 * 1024,
  /** Attempts, releases or waits that a command may end; more are ended over several batches. */
  closuresPerCommandMax: 256,
  /** Most commands in one turn. The commit of the turn's batch, and the answers, follow the last command. */
  turnCommandsMax: 4096,
  turnMsMax: 10,
  /** Longest wait of a turn for more commands, from the begin of the turn before (coordinator/leader/turns.ts). */
  turnSpacingMs: 4,
  /** Commands between two looks at the clock: a look costs less than a command, and one command microseconds. */
  turnClockCommands: 64,
  /** A longer turn raises an alarm: heartbeats and timers wait for the turn. */
  turnMsAlarm: 50,
  /** One batch in flight leaves the link idle; three add latency, but no throughput. */
  batchesInFlightMax: 2,
  /** Queued messages; further messages are refused with BackpressureError, so that the heap does not grow. */
  inboxDepthMax: 65_536,
  /** Longest a batch may wait for a definite append outcome before the attempt is repeated. */
  appendTimeoutMs: 2_000,

  /** Pause before an append of unknown outcome is repeated. */
  appendRetryMs: 100,
  /** …and before a batch that found no room: several times before a standby would campaign. */
  journalFullRetryMs: 250,

  /** Time until the answer "no such stream" is believed: servers in a fail-over also send the answer. */
  streamMissingMs: 5_000,
  /** Time until a batch without acknowledgement is reported: servers in a fail-over take some seconds. */
  unacknowledgedMs: 5_000,
  /** …and the interval of further reports. */
  unacknowledgedAgainMs: 60_000,
  /** Time until a coordinator that reads the journal believes damage: after a fail-over a server may lack records. */
  lossPatienceMs: 5_000,
  /** …with at least this number of looks, spread over the time: a look may wait for a server, and waiting is no
   *  evidence. */
  lossLooksMin: 5,
  /** Time for which a coordinator keeps the newest batches in memory, to restore batches removed by a power failure.
   *  Longer than servers wait by default before a sync (2 min), and as much as a process can spare. */
  recentRecordsMs: 5 * 60_000,
  recentRecordsBytes: 64 * 1024 ** 2,
  /** …in blocks of a size that holds hundreds of batches under load, and costs an idle coordinator little. */
  recentBlockBytes: 1024 ** 2,
  /** Coordinators whose heartbeats are remembered. */
  announcersMax: 64,
  /** Validity of a coordinator's heartbeat, in T. */
  announcementTimeouts: 2,
  /** …and a coordinator that announces more than the journal shows is waited for over this number of reads, T apart,
   *  without progress. A coordinator that holds more records appends them within 2·T. */
  announcementWaitsMax: 5,
  /** Time that a starting coordinator waits for heartbeats of a leader or standbys. */
  greetingMs: 250,

  // --- leadership -----------------------------------------------------------------------------
  /** T: silence after which a standby campaigns, by default. */
  leaderTimeoutMs: 3_000,
  /** Shorter, and a pause of the garbage collector or of a disk would change leaders. */
  leaderTimeoutMsMin: 500,
  /** With a longer T, requests time out before a new leader leads. */
  leaderTimeoutMsMax: 10_000,
  /** A standby waits for T and a random part of this share more, so that one standby is first. Two campaigns at once
   *  are harmless, because the journal accepts only the first. */
  electionJitterShare: 1 / 3,
  /** …and before a campaign the standby asks the other coordinators for the end of their logs, and waits this share of
   *  T for answers. */
  campaignAskShare: 1 / 20,
  /** The leader appends at least this many times per T, so that two lost appends do not depose the leader. */
  leaderHeartbeatsPerTimeout: 3,
  /** Interval of the leader's checks that depend on time: silent agents, its own heartbeat, summaries of refusals. */
  pulseMs: 250,
  /** …and at least this number of checks per T, so that heartbeats are not late by much of T. */
  pulsesPerTimeout: 12,
  /** Delay of a pulse or heartbeat that means a stalled process: silence is measured anew. */
  pulseLateMs: 1_000,
  /** A standby lets the leader answer a query first. */
  standbyAnswerMs: 150,
  /** Queries that wait for a standby at once; further queries are left to the leader, or to a repeated request. */
  standbyQueriesMax: 1_000,
  /** A leader steps down if its connection to agents and clients is lost for this time and for T, while it can still
   *  write to the journal. Longer than the time to reconnect to a server that is back. */
  leaderIsolationMs: 3_000,
  /** Time until a leader that must end, but cannot write, ends without writing. */
  handOverMs: 5_000,
  /** Subjects whose last batch the live stream remembers; a forgotten subject restarts at 0. */
  eventSubjectsMax: 50_000,
  /** Interval at which refusals are journaled as one event. */
  refusalSummaryMs: 1_000,
  /** A leader gives no definite answer without an acknowledged append sent within this share of T. */
  leaderLeaseShare: 0.8,
  /** Difference of wall clock and journal time up to which the journal's time jumps; a larger difference is made up
   *  slowly. */
  clockSkewMsMax: 5_000,
  /** How fast a difference is taken up: 1 % a second. */
  clockSlewShare: 0.01,

  // --- agents ---------------------------------------------------------------------------------
  heartbeatMs: 1_000,
  /** H: silence after which an agent is lost and its attempts run elsewhere. */
  agentLostMs: 10_000,
  /** Lease of an attempt, renewed by each heartbeat that lists the attempt; at least H. */
  leaseTtlMs: 10_000,
  /** Share of a lease before the lease's end at which the SDK aborts the attempt. */
  leaseAbortShare: 0.2,
  /** Messages with assignments or grants that an agent keeps until a heartbeat is confirmed; further messages are sent
   *  again. */
  deferredPushesMax: 64,
  /** Heartbeats by which an agent may lag behind its assignments before it counts as unresponsive. */
  unresponsiveHeartbeats: 2,
  /** Time for which `status` shows two processes with one id, after the last message of the fenced process. */
  outlivedShownMs: 10 * 60_000,
  /** Silence after which an agent gets no new tasks: a task for a dead agent would wait for H. */
  unresponsiveSilenceMs: 3_000,
  maxConcurrentMax: 1_024,
  /** Attempts that the answer to a join lists as not the agent's: with the longest ids they fit one message. */
  unknownPerJoinMax: 1_024,
  /** Size of an assignment or an outcome beside its payload, result or error: names, ids and a grant's token. */
  pushItemOverheadBytes: 512,
  /** Bytes of the key of the attempts' tokens: as many as its HMAC has. */
  tokenKeyBytesMin: 32,
  /** How long a server may refuse credentials that it accepted before, until the connection ends. A server that is
   *  being replaced may refuse them for a moment. */
  unauthorizedMs: 15_000,
  /** Longest time between two refusals that count as one: several reconnects, at their slowest. */
  unauthorizedGapMs: 15_000,
  agentsMax: 10_000,
  /** Remembered fenced sessions of an agent: more than the processes started under a shared id by mistake. */
  fencedIncarnationsMax: 16,
  /** Time until an agent that left is forgotten, with all learnt rates. */
  agentForgottenMs: 24 * 3_600_000,
  /** Time until a process that only acquired slots is forgotten: nothing was learnt, no assignment was numbered, and
   *  the ends of its slot leases are remembered separately. Until then a late request still belongs to the ended
   *  session. */
  slotAgentForgottenMs: 60_000,
  /** Result messages one agent has under way: enough to fill the wire, more only makes messages smaller. */
  resultMessagesInFlightMax: 2,
  /** Pause before an agent asks a leader again; doubles up to the second. */
  agentRetryMs: 50,
  agentRetryMsMax: 1_000,
  /** Time for running handlers to end after the stop of an agent. The agent itself then reports their attempts… */
  agentStopMs: 3_000,
  /** …and time for the leader to confirm that the agent left. Without the confirmation, silence ends the session. */
  agentLeaveMs: 2_000,
  /** Interval at which a draining agent checks its open work, and logs changes. */
  agentDrainLookMs: 2_000,
  /** Time until a draining agent without work leaves, even if no leader has heard of the drain. With `agentLeaveMs`
   *  the sum is 6 s, as long as a change of leaders may take. */
  agentDrainUnheardMs: 4_000,
  /** Interval at which an agent's progress is passed on; meanwhile the newest report waits. */
  progressMs: 250,
  /** Progress reports per second and running attempt that a leader accepts: the SDK's rate, and as many again for late
   *  timers. */
  progressPerAttemptMax: 8,
  /** Interval at which an attempt's chunks are passed on: readers see 20 steps per second, as smooth as typing. */
  chunksMs: 50,
  /** Bytes of one chunk, as text or base64. */
  chunkBytesMax: 128 * 1024,
  /** Bytes of chunks that wait at an agent, by attempt, and in a message. Beyond, the oldest chunks are dropped. */
  waitingChunksBytesMax: 256 * 1024,
  /** Bytes of chunks that a client keeps for the readers of a task. Beyond, the oldest chunks are dropped. */
  keptChunksBytesMax: 4 * 1024 * 1024,
  /** Chunks that a client keeps for the readers of a task: tiny chunks need more memory than their text. */
  keptChunksMax: 65_536,
  /** Messages with chunks per second and running attempt that a leader accepts: the SDK's rate, and as many again. */
  chunkMessagesPerAttemptMax: 40,
  /** Messages per second and type that a leader accepts from one agent. A correct agent sends less: one heartbeat per
   *  second; a join or a leave, repeated with growing pauses; two messages of results in flight, each with all waiting
   *  results. */
  agentMessagesMax: { heartbeats: 20, joins: 20, results: 2_000, "slot-requests": 2_000 },
  /** An agent that goes on sending too much is logged once in a while, not each second. */
  agentFloodQuietMs: 60_000,
  /** Pairs of agent and message type whose rate is remembered. */
  agentBucketsMax: 50_000,
  /** Agents of a connection in one message. */
  agentsPerMessageMax: 1024,
  /** Agents of a connection send their heartbeats in so many groups per period. The heartbeats of hundreds of agents at
   *  once hold up a program for tens of ms. */
  heartbeatGroups: 4,
  /** Agents in a group before the next group begins: a message more per period costs more than a few agents more. */
  heartbeatGroupAgents: 64,
  /** Least interval of heartbeats of a connection with several agents: urgent heartbeats wait, and share a message. */
  bundledHeartbeatsMs: 100,
  /** Assignment numbers that an agent remembers beyond the first missing one: the assignments of a leader in two
   *  heartbeats, at 30,000 per second. */
  assignmentsAheadMax: 65_536,
  /** Attempts that were revoked before their arrival, remembered per agent. */
  earlyRevokesMax: 1_024,
  /** Time from TERM to KILL for a command that must end. */
  execKillGraceMs: 2_000,
  /** Last part of a command's stderr, kept for its error. */
  stderrTailBytes: 4 * 1024,
  /** Last part of an attempt's log that its agent keeps: some hundred lines. */
  attemptLogBytes: 16 * 1024,
  /** Ended attempts whose logs an agent keeps, and as many that wrote nothing: enough for recent failures. */
  endedLogsMax: 1_000,
  /** …and their total size: 256 attempts with full logs. */
  endedLogsBytesMax: 4 * 1024 ** 2,
  /** Least time between two changes of an agent's chart, and so its status, by its load. A heartbeat changes the chart
   *  anyway. A transition costs as much as ten tasks. */
  loadReportMs: 500,
  /** An agent's heartbeat is late after this share of its period: then its stand-in sends the heartbeat. The rest of
   *  the leases' time is left for answers. */
  heartbeatLateRatio: 1.25,
  /** First size of the memory that an agent shares with its stand-in: a heartbeat with some thirty attempts. */
  slateBytes: 4 * 1024,
  /** An agent that holds more attempts shows its stand-in new attempts per interval, not at once. A heartbeat with
   *  hundreds takes longer to write than a short task to run. Until then the leader counts them as not seen. */
  slatedAtOnceMax: 64,
  slateMs: 250,
  /** Time after which the stand-in answers a question for logs in place of a blocked agent. */
  standInLogMs: 400,
  /** Log messages that go to the agent's session at once, per interval. Further messages wait for the next interval,
   *  so that a handler that writes without end does not fill the session's thread. */
  logMessagesPerFlush: 64,
  logFlushMs: 50,
  /** Time that a leader waits for an agent's logs… */
  agentLogMs: 1_000,
  /** …and time for which a server permits the agent's answer. */
  agentAnswerMs: 10_000,
  /** Time that a client waits for the whole request: a person waits for logs that may not exist. */
  logAskTimeoutMs: 2_000,
  /** Questions for logs that a leader has open with agents; each takes as long as the agent does. */
  agentLogsAskedMax: 64,
  /** Newest attempts of one task whose logs are shown. */
  logsShownMax: 3,
  /** A line on the token descriptor: a longer line is no number, and the rest of it is not logged. */
  tokensLineCharactersMax: 32,
  /** Part of a time that a command names and that cannot be read, in the warning. */
  retryAfterCharactersShown: 64,
  /** Part of a failed HTTP answer that is kept for the error… */
  httpErrorBytes: 1024,
  /** …and time for which it is read: status and headers already say what the answer means. */
  httpErrorMs: 1_000,
  /** A timer set for longer fires at once. */
  timerMsMax: 2 ** 31 - 1,

  // --- attempts -------------------------------------------------------------------------------
  maxAttemptsDefault: 3,
  maxAttemptsMax: 100,
  /** Consecutive infrastructure failures of a task that use up no attempt. */
  infrastructureFailuresMax: 10,
  retryBackoffMs: 1_000,
  retryBackoffMsMax: 300_000,
  /** Default time limit of an attempt: a handler that hangs must not keep capacity forever. */
  attemptTimeoutMs: 3_600_000,
  /** A month: longer than any known attempt, and still an end for an attempt that hangs. */
  attemptTimeoutMsMax: 30 * 24 * 3_600_000,
  /** A tenth of a heartbeat: more frequent progress is no useful sign. */
  stallMsMin: 100,
  stallMsMax: 24 * 3_600_000,
  /** Time until an attempt without a start counts as silent, if the leader's account shows free capacity. Handlers of
   *  the agent's earlier session may never end. */
  stallWaitMs: 60_000,

  // --- queues ---------------------------------------------------------------------------------
  queuedTasksMax: 1_000_000,
  queuedTasksPerProjectMax: 250_000,
  /** Pause for a refused submitter without better information. */
  retryAfterMs: 500,
  /** Pause for a submitter if only the end of open attempts frees a budget: the usual time of attempts that use
   *  tokens. */
  budgetRetryMs: 5_000,
  /** Ended tasks are kept for idempotency and `waggle task`, up to a number and a time, unless the policy sets
   *  others. */
  rememberedTasksDefault: 1_000_000,
  rememberMsDefault: 24 * 3_600_000,
  /** Attributes of ended tasks that are kept for searches, in characters with some overhead per task: those of the
   *  tasks that ended longest ago are dropped first. */
  rememberedAttributesMax: 64 * 1024 ** 2,
  /** Memory of a task's attributes beside the text. */
  attributesOverhead: 200,
  /** Tasks to forget per ended task, if many are due at once: bounds the length of a turn. */
  forgottenPerEndMax: 256,
  /** Ids of awaited tasks in a coordinator's memory. */
  awaitedTasksMax: 1_000_000,
  /** …and clients that may wait for the same task. */
  awaitersPerTaskMax: 64,
  /** Maximum length of a client's inbox: two ids of the longest with a prefix. Each awaited task keeps one. */
  inboxCharactersMax: 192,
  /** Projects named in the error about an ambiguous id. */
  ambiguousProjectsShown: 5,
  /** A task's cost, and a slot lease's: a whole queue of the heaviest, in thousandths, still adds up exactly. */
  taskWeightMax: 1_000_000,
  /** Enough for any scale of priorities, on both sides of 0. */
  priorityMagnitudeMax: 1_000_000,
  /** Known kinds that an unknown kind is compared with: a warning must not delay a turn. */
  nearMissKindsMax: 1_000,

  /** Projects, and users of one project, with counters in the state; idle entries make room for new ones. */
  projectsMax: 10_000,
  usersPerProjectMax: 10_000,

  // --- clients --------------------------------------------------------------------------------
  /** One question to a leader; a journal's append may stall for several seconds when a server fails over. */
  requestTimeoutMs: 5_000,
  /** Time for which a request is repeated, with the same ids, by default. */
  askTimeoutMs: 30_000,
  /** Pause before a question is repeated; doubles up to the second. */
  askBackoffMs: 25,
  askBackoffMsMax: 1_000,
  /** Time without an answer that proves a silent coordinator, if the server said before that no coordinator listens. */
  silenceMsMin: 1_000,
  /** Enough to fill the wire while answers are on their way; more only makes messages smaller. */
  submitMessagesInFlightMax: 4,
  /** Interval of passes over all waiting submits, to end those without time left. */
  submitGiveUpMs: 10,
  /** …or the interval per waiting submit, if longer: a pass visits all of them. */
  submitGiveUpMsPerTask: 0.002,
  /** Unaccepted tasks that one connection holds; equal to a project's maximum queue. */
  pendingSubmitsMax: 250_000,
  /** Tasks, and bytes, that `submitMany` reads ahead. */
  submitWindowTasksMax: 4_096,
  submitWindowBytesMax: 8 * 1024 * 1024,
  /** A client gives up a term after this time of answers from leaders of lower terms only. Longer than a deposed
   *  leader may still consider itself the leader. */
  termDoubtedMs: 30_000,
  /** Interval at which a client asks again for an awaited task, in case the notice was lost… */
  awaitRefreshMs: 5_000,
  /** …and tasks per request, to spare the leader. */
  awaitRefreshTasksMax: 4_096,
  /** Time that a closed connection gives its agents to finish before it stops them: a program can wait, a person
   *  cannot. */
  closeDrainMs: 5_000,
  /** Interval at which a follower of the journal polls, in case a notice was lost. */
  journalPollMs: 2_000,

  // --- whose turn -----------------------------------------------------------------------------
  /** A project without an assignment for this time goes first, once: the window of the budget document's guarantee. */
  guaranteeMs: 3_600_000,
  /** Ticks of waiting per competing waiter, after which a waiter goes next. */
  starvationLimitTicksPerWaiting: 20,
  /** The same for a set of resources where the policy has no starvation limit: as many as with the starvation limit of
   *  our rules. */
  setStarvationLimitTicksPerWaiting: 20,
  /** Estimated tokens of the first attempt of a kind without any estimate. */
  tokensPerAttemptDefault: 1_000,
  /** Maximum estimate for one attempt, by submitter, agent or policy: the sum over the capacity of all agents stays an
   *  exact integer. */
  tokensPerAttemptMax: 400_000_000,
  /** Steps in which a budget's window moves: the error is at most one step. */
  windowBuckets: 60,
  /** History of use, so that a window of any length can start from it (state/use-history.ts). The finest step is
   *  shorter than a bucket of the shortest window… */
  historyStepMs: 16,
  /** …and the steps per doubling keep each step within 1/60 of its age… */
  historyStepsPerLevel: 128,
  /** …and the levels reach further back than the longest window. */
  historyLevelsMax: 24,
  /** Weight of the newest report in a kind's mean of tokens. */
  tokensLearningShare: 0.3,
  /** Maximum factor on a task's estimate, even if the estimates of its kind were far off. */
  estimateFactorMax: 1_000,
  /** Maximum cost of an attempt as a multiple of the weight, even with a wrong estimate of tokens. */
  costRatioMax: 1_000,
  /** Lost attempts that are still charged if their report arrives late. */
  unchargedAttemptsMax: 100_000,

  // --- what operators set ---------------------------------------------------------------------
  /** Credit weights and importances: a share below a thousandth of the usual is better said with `pause`, and
   *  the quotient of any cost and weight keeps its digits. */
  settingWeightMin: 0.001,
  settingWeightMax: 1_000_000,
  /** Maximum of a budget or a rate: with all reservations the sum stays an exact integer. */
  tokensMax: 1_000_000_000_000,
  /** A step of the window (`windowBuckets`) takes several turns… */
  budgetWindowMsMin: 1_000,
  /** …and no budget covers more than a year. */
  budgetWindowMsMax: 366 * 24 * 3_600_000,
  /** More than the capacity of all agents: a higher limit would limit nothing. */
  openAttemptsMax: 100_000_000,
  slotsPerResourceMax: 100_000,
  /** Maximum of `maxWaiters`: each waiter is scored at each release. */
  maxWaitersMax: 10_000,
  /** A larger λ gives every agent with a backlog a score of nearly 0. */
  lambdaMax: 100,
  /** Longer than a queue as long as may be takes to pass. */
  starvationLimitTicksMax: 1_000_000,
  guaranteeMsMin: 1_000,
  guaranteeMsMax: 31 * 24 * 3_600_000,
  /** Whoever asks again does so within `askTimeoutMs`, and must be known then. */
  rememberMsMin: 60_000,
  rememberMsMax: 31 * 24 * 3_600_000,
  rememberedTasksMin: 1_000,
  /** Newest terms whose first batches the state names. A client or an agent that was away for more changes of leader
   *  may not notice a loss that the following terms have covered. */
  rememberedTerms: 8,
  /** Characters of a term's hash, to tell two terms of one number apart. */
  openedCharacters: 12,
  /** Some 170 bytes each with ids of 36 characters, and as many lines of a snapshot. */
  rememberedTasksMax: 10_000_000,
  /** Rows that are kept because of settings: bounds on settings. */
  kindsSetMax: 10_000,
  resourcesMax: 1_000,
  ratesMax: 1_000,
  grantsMax: 1_000,
  /** Names in one list of a grant: a grant is journaled whole. */
  grantNamesMax: 128,

  // --- learning -------------------------------------------------------------------------------
  /** Weight of the swarm's rate and latency for the kind in an agent's estimates, in attempts. */
  priorAttempts: 8,
  /** Assumed success rate of a kind without attempts. */
  priorSuccessRate: 0.9,
  /** Later attempts of the same agent and kind after which an attempt counts half. */
  forgetHalfLifeAttempts: 50,
  /** …or journal time, so that a repaired agent recovers. */
  forgetHalfLifeMs: 10 * 60_000,
  /** Idle kinds with remembered values: the kinds that became idle last. */
  idleKindsMax: 10_000,
  /** Kinds of an agent with remembered outcomes: the served kinds, and as many kinds served before. */
  recordsPerAgentMax: 512,
  /** An agent's success rate counts as below the swarm's only beyond this many standard errors: a single failure among
   *  many successes must not lock out an equal agent. */
  successErrorsTolerated: 0.5,
  /** An agent counts as slower only beyond this, in powers of two: 2^0.1 is 7 %… */
  slownessToleratedBits: 0.1,
  /** …and a number of standard errors of the agent's mean: varying latencies must not lock out an equal agent. */
  slownessErrorsTolerated: 1.5,
  /** Variance of the log₂ of latencies that is taken for an agent with few attempts: factors of ½ to 2 are common. */
  priorLatencySpread: 1,
  /** One latency counts as at most 2² = 4 times the expected latency, and at least as a quarter. */
  latencyOutlierBits: 2,
  /** A latency counts half after this journal time, and a slow agent without outcomes is then probed. Longer than
   *  for outcomes: each probe costs a slow attempt, and a long task takes minutes. */
  forgetLatencyHalfLifeMs: 4 * 60 * 60_000,
  /** Attempts of the kind by the swarm after which a slow agent is probed… */
  probeAttempts: 8,
  /** …and how many slow probes double that number: up to every 16,384 attempts, some 0.1 % for 16 slow agents. */
  probeStepMax: 11,
  /** Attempts before an agent may be suspended for a kind. */
  suspendAttemptsMin: 10,
  /** Share of the swarm's success rate below which an agent is suspended. */
  suspendShare: 0.25,
  /** First probe of a suspended agent; doubled on each failed probe. */
  suspendMs: 5_000,
  suspendMsMax: 10 * 60_000,

  // --- affinity -------------------------------------------------------------------------------
  /** Time from the last use until an affinity is forgotten: as long as providers keep a cached prompt. */
  affinityMs: 60 * 60_000,
  /** Remembered affinities; those used longest ago are forgotten first. Some 250 bytes each. */
  affinitiesMax: 50_000,
  /** Agents whose labels are compared with the needs of a submitted task, for a warning. */
  labelledAgentsComparedMax: 100,
  /** Values of one label that a warning or an explanation names. */
  labelValuesShownMax: 3,
  /** Comparisons of labels with needs for one answer of `status`: some 5 ms. */
  statusLabelsComparedMax: 200_000,

  // --- holds ----------------------------------------------------------------------------------
  /** Refusals without a time, in a row, that place a hold: one is chance, two may share a cause with it. */
  refusalsBeforeHold: 3,
  /** First hold without a given time; doubled on each refused probe. A probe costs one attempt that counts nowhere. */
  holdBackoffMs: 5_000,
  holdBackoffMsMax: 10 * 60_000,
  /** A probe not refused for so long ends its hold: a provider refuses within seconds, and a task may take hours. */
  probeTrustedMs: 30_000,
  /** Shortest hold: an agent that always names a shorter time would be probed without a pause. */
  holdMsMin: 100,
  /** Longest hold: the longest quota windows that providers have are a week. */
  holdMsMax: 7 * 24 * 60 * 60_000,
  /** Holds on types, and types with refusals in a row: more than types with rates. */
  holdsMax: 1_000,
  /** Holds that `status` lists, the first to end first. */
  holdsShownMax: 100,
  /** Part of a hold's reason in `status`; `waggle events` has all of it. */
  holdReasonShownCharacters: 160,

  // --- slots ----------------------------------------------------------------------------------
  /** Default of LOCO's `maxWaiters`: a further request for the same resource is refused. */
  waitersPerResourceMax: 100,
  /** Default of the slots of a resource that no operator has set, where resources are open. */
  slotsDefault: 4,
  /** Slots of one slot lease, repeated names included: each request is checked whenever a slot becomes free. */
  slotsPerLeaseMax: 16,
  /** Slot leases that an agent may hold or wait for: a heartbeat lists all leases. */
  slotLeasesPerAgentMax: 1_024,
  /** Age of a request from which a heartbeat without its handle ends it. A heartbeat of another thread or connection is
   *  sent within this time of its making. */
  slotUnlistedMs: 2_000,
  /** Idle time of a slot lease: heartbeats are a second apart, and a client touches four times per idle time. */
  slotIdleMsMin: 1_000,
  slotIdleMsMax: 24 * 3_600_000,
  /** A touch is journaled only if it moves the end of the idle time by this share: a client may touch per chunk. */
  slotTouchShare: 1 / 8,
  /** A client sends at most so many touches per idle time of a slot. */
  slotTouchesPerIdleTime: 4,
  slotLabelCharactersMax: 128,
  /** Expected tokens of a slot lease: more than any call of a model uses, and sums stay exact. */
  tokensPerSlotLeaseMax: 40_000_000,
  /** Idle time of a slot that a model's call holds, from chunk to chunk: the clients of OpenAI and Anthropic wait as
   *  long for an answer. */
  callIdleMs: 10 * 60_000,
  /** Tokens of an answer, in the estimate of a call's tokens. */
  answerTokensExpected: 1_000,
  /** Chunks and bytes of a stream that nobody reads. Longer streams wait for the reader, within the idle time. */
  chunksReadAheadMax: 100_000,
  bytesReadAheadMax: 16 * 1024 * 1024,
  /** An event of a stream that is not finished, in characters: the last event repeats the whole answer. */
  eventCharactersMax: 16 * 1024 * 1024,
  /** Holders, and waiters, of a resource in `status`. */
  slotLeasesShownMax: 16,
  /** Ended handles that are remembered, to distinguish a second release from a release of an unknown handle. */
  endedHandlesMax: 65_536,
  /** A month, as of an attempt: whoever would wait longer for a slot says no time-out at all. */
  acquireTimeoutMsMax: 30 * 24 * 3_600_000,
  /** An agent that stops waiting by its own clock waits longer than the journal's deadline, so that the journal's
   *  decision comes first if a leader is present. */
  acquireGraceMs: 2_000,

  // --- watching the load -----------------------------------------------------------------------
  /** A task that waits longer is a finding of `waggle health` if every agent for it is full. */
  healthWaitMs: 30_000,
  /** A task that waits longer beside free agents is a finding of `waggle health`. */
  healthHeldBackMs: 120_000,
  /** Success rate of a kind below which `waggle health` calls the kind failing. */
  healthSuccessRateMin: 0.5,
  /** Median time of an append from which on `waggle health` calls the journal slow: each answer waits as long, and a
   *  leader appends at most two batches at once. */
  healthAppendMs: 200,
  /** Recent appends from which on `waggle health` judges the journal. */
  healthAppendsMin: 5,
  /** Time between two verdicts of `waggle health --watch`. */
  healthWatchMs: 2_000,
  /** Window and number of the recent turns and appends whose times `status` sums up. */
  timingsWindowMs: 60_000,
  timingsMax: 512,
  /** Pause between two samples of the event loop's lag. Each wakes the process: 50 per second were a quarter of what an
   *  idle coordinator used. */
  loopLagSampleMs: 100,
  /** A block of half a second shows for 10 to 20 s, so that a look per second, or a scrape per 15 s, sees it. */
  loopLagWindowMs: 10_000,
  /** Growth of a coordinator's heap between two collections of the whole heap, % of what is live. */
  heapGrowingPercent: 200,
  /** Values of one label with series of their own, such as kinds; further values share a series. */
  metricNamesMax: 200,
  /** Agents with series of their own, if metrics are asked for by agent. */
  metricAgentsMax: 1_000,
  /** Connections to the server of metrics; a Prometheus needs one. */
  metricsConnectionsMax: 32,
  /** Longest time for a request of metrics to arrive. */
  metricsRequestMs: 5_000,
  /** Part of a heartbeat's interval after which the next heartbeat counts as missed. */
  heartbeatLateShare: 0.5,
  /** Assignments of a kind that a concentration alert looks at: recent enough for a repaired agent to end the alert. */
  concentrationAssignments: 1_000,
  /** Fewest assignments that an alert is raised on. The share of 200 has a standard error of 0.035 at most: chance
   *  alone does not carry an even share over the threshold. */
  concentrationAssignmentsMin: 200,
  /** Added to 2/n, the threshold of n agents: the better of a few agents may get twice the even share. */
  concentrationSlack: 0.2,
  /** Highest threshold: 2/n + 0.2 is above 1 for two agents, and an alert on their kind could never be raised. */
  concentrationShareMax: 0.95,
  /** Kinds whose assignments are watched, the most recent first: at most some 60 KB each, with a thousand agents per
   *  kind. */
  concentrationKindsMax: 1_000,
  /** Time without the condition until an alert ends, so that a flickering alert is logged at most twice per minute. */
  concentrationQuietMs: 60_000,
  /** Alerts that `status` shows, and kinds with a single agent. */
  concentrationAlertsShownMax: 16,
  /** Window in which `status` measures how long agents were full while tasks for them waited: long enough to ignore
   *  short peaks, short enough to show the effect of a remedy. */
  bottleneckWindowMs: 10 * 60_000,
  /** …in steps that are kept per agent. */
  bottleneckSteps: 10,
  /** Events that `waggle events` prints without flags, and the maximum of --tail, which is held in memory. */
  eventsTailDefault: 50,
  eventsTailMax: 100_000,
  /** Tasks whose kind a reader of events remembers, for its filter by kind: some 10 MB. */
  eventKindsRememberedMax: 100_000,
  /** Rows per table that `waggle status` lists without --all: several tables fit a screen together. */
  statusRowsShown: 20,
  /** Kinds of an agent in these rows. */
  statusKindsShown: 3,
  /** Queues in the summary of waiting tasks: the head must fit a screen. */
  statusReasonsMax: 3,
  /** Maximum length of a hold's reason in `status`: the head has a line per hold. */
  statusReasonCharactersMax: 100,
  /** Bottlenecks that `status` shows, the worst first. */
  bottlenecksShownMax: 5,

  // --- receipts and rounds ---------------------------------------------------------------------
  /** Bytes of a receipt. */
  receiptBytesMax: 512,
  /** Agents in a receipt: the winner and the next two. */
  receiptCandidatesMax: 3,
  /** As much of a queue's name stands in a receipt before a candidate more does. */
  receiptQueueBytesMin: 24,

  /** Steps of journal time in which forgetting by time, and the swarm's expectation of a kind, are updated. */
  rateEpochMs: 5_000,
  /** Minimum factor for speed in the score of a slow agent. */
  speedFactorMin: 1 / 16,
  /** Idle rankings of agents that are kept, beyond twice the number of queues: the cost of building a ranking grows
   *  with its agents. */
  idlePoolsMax: 64,
  /** Different kinds, roles and needs of live tasks with needs. Each set is a queue when its tasks wait, and each round
   *  looks at each queue, in about 0.2 µs. */
  needsQueuesMax: 5_000,
  /** Tasks of a user that are checked for one within a budget. */
  budgetLookAhead: 16,

  // --- journal --------------------------------------------------------------------------------
  /** Maximum that a command may add to a batch: half of the server's max payload. */
  batchBytesMax: 512 * 1024,
  journalBytesMax: 10 * 1024 ** 3,
  /** Largest record of a file journal: equal to a server's max payload. */
  journalRecordBytesMax: 8 * 1024 ** 2,
  /** Size of the window through which a file journal is read… */
  journalReadWindowBytes: 1024 * 1024,
  /** …and of the smaller window for a single record: the distance between two indexed positions. */
  journalIndexSpacingBytes: 256 * 1024,
  /** The holder of a folder's lock must identify itself in time, or counts as silent. */
  lockAnswerMs: 1_000,
  /** One pull from a stream: enough to hide the round trip, and no more than a reader keeps in memory. */
  journalPullBytes: 4 * 1024 ** 2,
  journalPullRecords: 1_024,
  /** Time that a pull waits for records; the server sends heartbeats meanwhile… */
  journalPullMs: 30_000,
  journalHeartbeatMs: 500,
  /** …and missed heartbeats in a row after which a pull is repeated. */
  journalHeartbeatsMissedMax: 3,
  /** Time until the server forgets a stream's consumer without a reader. */
  journalReaderIdleMs: 30_000,
  /** Time until a stream's reader repeats a request: servers in a fail-over drop requests silently. */
  journalAskMs: 1_000,
  /** Pause before a silent stream is asked again; doubles up to a second. */
  journalRetryMs: 50,
  journalRetryMsMax: 1_000,
  /** Longest a stream may stay away before opening it fails: fail-overs were seen to take 8.8 s… */
  journalOpenMs: 10_000,
  /** …and before a replay gives up, because a restart costs more. */
  journalSilenceMsMax: 30_000,
  /** Seals of a segment that a server acknowledged and does not show, before the segment counts as sealed and damaged.
   *  The pauses between them add up to half a second. */
  sealsUnshownMax: 5,
  /** Time until a record that is missing between existing records counts as lost: a server that has just taken over may
   *  not know its records yet. */
  journalGapMs: 3_000,
  /** At this share of max_bytes no tasks are accepted; results and terms are still journaled. */
  journalFullShare: 0.85,
  /** …and at this share no tasks are assigned: the rest is for results of running attempts, and for the leader's own
   *  records. */
  journalUnassignedShare: 0.92,
  /** Overhead of a record in a stream: subject, headers, bookkeeping; an estimate between two measurements. */
  journalRecordOverheadBytes: 128,
  /** Interval, while the journal is full, of checks whether segments before the newest base may be removed. */
  journalRoomRetryMs: 2_000,
  /** Time for which a standby lets a leader without room lead: twice the time until the leader may remove segments. */
  fullLeaderMsMax: 240_000,
  /** Bytes of batches in one page of a query. */
  queryPageBytesMax: 256 * 1024,
  /** Pages that are read at the same time, each by a separate reading: enough to hide the latency of a server, and too
   *  few to delay appends. On a NATS server each reading is a consumer, which is kept for further pages. */
  pageReadsAtOnce: 4,
  /** …and pages that wait for a reading: at some milliseconds per page, the last one is served within a second. */
  pageReadsWaitingMax: 64,
  /** Bytes that a reading requests ahead: two pages, so that the next page is ready. */
  pageAheadBytes: 512 * 1024,
  /** Time until an unused reading is closed: an active reader asks sooner. */
  journalReadingIdleMs: 2_000,
  /** Time for which a page answers equal requests, so that a flood of equal requests costs a single read per second… */
  pageSharedMs: 1_000,
  /** …and the number of such pages, 8 MiB. */
  pagesSharedMax: 32,
  /** Bytes per second that clients may read from the journal, per project and in total: the rate of a single reader,
   *  and a fifth of the maximum of two cores. */
  pageBytesPerSecond: 8 * 1024 ** 2,
  pageBytesPerSecondOfAll: 16 * 1024 ** 2,
  /** …and the burst that is allowed after a quiet time. */
  pageBurstMs: 2_000,
  /** Cost of a question about the state, beside the bytes of its answer. With the rate above, a project gets about 500
   *  small answers a second. */
  answerCostMin: 16 * 1024,
  /** Minimum cost of a page, in bytes: the overhead of request and answer. */
  pageCostMin: 4 * 1024,
  /** Cost of a record beside its bytes: some 10 µs of server time and of coordinator time. */
  recordCost: 512,
  /** Projects whose recent reads are remembered: all projects of the state, and one entry for all together. */
  readBudgetsMax: 10_001,
  /** A refused reader asks again no sooner. */
  pageRetryMsMin: 50,
  /** Single records that are read at the same time, for clients that await outcomes… */
  outcomeReadsAtOnce: 16,
  /** …and reads that wait, each for at most `awaitReadMs`. */
  outcomeReadsWaitingMax: 1_024,
  /** Interval at which the log reports refused reads, with their number. */
  readsRefusedQuietMs: 60_000,
  /** Bytes of agents in the answer to `explain`: some two thousand agents, agents that serve the kind first. */
  explainedAgentsBytesMax: 256 * 1024,
  /** Users that `explain` checks for reserved room in a budget, and different demands that are compared with all
   *  agents. Without a bound an answer would block the leader for users times agents. */
  explainedUsersMax: 10_000,
  explainedDemandsMax: 16,
  /** Names of one type in a filter of tasks. */
  filterNamesMax: 64,
  /** Tasks per page of a list: default and maximum. */
  tasksPageDefault: 50,
  tasksPageMax: 1_024,
  cursorCharactersMax: 128,
  /** Task lists that are in progress or wait; each visits every task. */
  taskScansMax: 16,
  /** Time that a scan of tasks holds the event loop; then it yields for the same time, so that turns can run. */
  taskScanSliceMs: 2,
  /** Retry requests that wait while the journal is read for an earlier one. */
  retriesWaitingMax: 64,
  /** Payloads that are read from the journal at the same time for retries. */
  retryReadsAtOnce: 8,
  /** Messages of a bulk retry or cancel that a client has under way at once: of several projects, or of many tasks. */
  bulkMessagesAtOnce: 4,
  /** Queries for single tasks that a bulk verb has in flight. */
  bulkQueriesAtOnce: 32,
  /** Retried tasks that a client remembers, so that an older outcome is not taken for the newest. */
  retriedTasksMax: 10_000,
  /** Payloads for retries that are held at once, in characters: the size of one turn. */
  retryBytesMax: 512 * 1024,
  /** Time to read an outcome for a waiting client; then the client asks again. */
  awaitReadMs: 2_000,
  /** Time until an outcome that repeated requests do not find is reported as lost. By then a leader has found the gap,
   *  saved its state, and announced where the audit begins, which is the better answer. */
  outcomeMissMs: 10_000,
  /** Missing batches whose first miss is remembered; the oldest are forgotten first. */
  missedBatchesMax: 1_000,
  /** Decoded batches that are kept for clients that ask for outcomes. */
  recentBatchesMax: 16,
  /** Silence after which a server of a stream is reported as away; servers send a heartbeat each second. The stream's
   *  leader reports so after 10 s, and steps down some seconds later. */
  replicaSilentMs: 5_000,
  /** Time for which `status` warns about a foreign record: by then an operator has looked, and most likely knows its
   *  writer. */
  foreignRecordShownMs: 24 * 3_600_000,
  /** How often room in the journal is looked at. */
  journalUsageMs: 5_000,

  /** Hashes of the newest batches that a segment's `Opened` repeats: a standby within this distance can compare its
   *  own batches. About 12 KiB. */
  openedHashesMax: 256,
  /** Length of the random id of a coordinator's session: no two are the same. */
  sessionCharacters: 12,
  /** Positions behind damage at which the reading of a segment restarts, for `waggle journal recover`: records behind
   *  the last one count as unreadable. */
  salvagedGapsMax: 1_000,
  /** Hashes of the newest batches that a coordinator keeps: two copies of a log that diverged earlier count as
   *  different. */
  recentHashesMax: 4_096,

  // --- compaction -----------------------------------------------------------------------------
  /** A base is due when the batches behind the newest base outweigh the base by a factor: a fifth of all writes is
   *  bases… */
  baseOutweighedTimes: 4,
  /** …and the batches since have a minimum size, which a restart reads in some seconds. */
  baseSpacingBytesMin: 64 * 1024 ** 2,
  /** Batches copied into the next segment together: enough to hide the way to a server, and 1 MiB in memory. */
  copiesAtOnceMax: 64,
  copiesAtOnceBytes: 1024 * 1024,
  /** Batches that the leader itself copies, while it takes no turn for some milliseconds. */
  copiesLeftFew: 16,
  /** …and rounds after which the leader copies the rest: batches arrive as fast as they are copied. */
  copyRoundsMax: 50,
  /** How often a maker asks whether the leader committed a batch. */
  committedLookMs: 10,
  /** Times in a row that damage is found before the leader takes the lead again: no fail-over of a server. */
  damagesMax: 2,
  /** Interval at which a leader looks for segments that are old enough to be removed. */
  retentionLookMs: 60_000,
  /** Looks after which a segment counts as faulty… */
  faultLooksMin: 6,
  /** …or looks on a single server, which knows all records before the first connection. */
  faultLooksAloneMin: 2,
  /** …and the pause between two looks: by then a server that takes over knows its newest records. */
  faultLookMs: 500,

  // --- bases ----------------------------------------------------------------------------------
  /** Size of a base's chunk: small enough to be hashed within a millisecond. A million tasks need some thousand
   *  chunks, whose positions and hashes fit the manifest. */
  baseChunkBytesMax: 512 * 1024,
  /** …or a share of the journal's storage, so that a small journal can be compacted in time. */
  baseJournalShare: 1 / 8,
  /** …or time since the last base, so that records beyond the retention are removed even with little load. */
  baseMs: 24 * 3_600_000,
  /** Interval of bases while the journal is short of room: each base lets the segments before the last base go. */
  baseShortMs: 30_000,
  /** A server that keeps streams in its page cache has synced older records (the default interval is two minutes): a
   *  power failure does not remove them. */
  baseSyncMs: 120_000,
  /** Niceness of the thread that makes a base: about a tenth of the weight of the leader's thread. So a base takes a
   *  free core, and also ends when none is free. */
  baseNiceness: 10,
  /** Pause after a failed base; doubles. */
  baseRetryMs: 5_000,
  baseRetryMsMax: 300_000,
  /** Part of the journal that is kept for readers, by default: it fits the default storage of a journal. */
  auditRetentionMs: 7 * 24 * 3_600_000,
  auditRetentionBytes: 7 * 1024 ** 3,
  /** With a shorter time `up` warns: results and histories of tasks may be removed before the submitter reads them. */
  auditRetentionMsLittle: 3_600_000,
  auditRetentionBytesLittle: 16 * 1024 ** 2,
  /** From the beginning of a term to the verification of the journal in the background: a leader that just took the
   *  lead has more urgent work. */
  auditCheckDelayMs: 10_000,
  auditCheckEveryMs: 24 * 3_600_000,
  /** After a verification that failed for the storage's sake. */
  auditCheckRetryMs: 60_000,
  /** Between two reports of progress. */
  auditCheckSaidMs: 1_000,
  /** Niceness of the thread that verifies: the lowest priority, because nothing waits for it. */
  auditCheckNiceness: 19,
  /** Reading or writing a snapshot yields the event loop after each slice: a quarter of a turn's alarm, so that the
   *  next line or record does not raise the alarm. */
  baseSliceMs: 12,
  /** Rows of a snapshot that are worked on between two looks whether a slice is over, where a row takes
   *  microseconds. */
  baseStepRows: 1_024,

  // --- the dashboard ----------------------------------------------------------------------------
  /** Port of the dashboard; the next free port if it is taken. */
  dashboardPort: 4_280,
  /** Ports that are tried, from `dashboardPort` on. */
  dashboardPortsTried: 20,
  /** Interval of the questions for the status, and of the points of the history. */
  dashboardPollMs: 1_000,
  /** Maximum wait for a status: a leader answers within milliseconds, and the page must report a lost leader soon. */
  dashboardAskMs: 2_500,
  /** Age of a status that still counts as present. */
  dashboardStatusMs: 1_500,
  /** Maximum wait of a request for a page, and of an action. */
  dashboardActionMs: 10_000,
  /** Without viewers, polls until one asks for the whole status: the others ask for the totals alone. */
  dashboardIdlePolls: 10,
  /** Minimum time between two live messages of a kind: at most four per second. */
  dashboardUpdateMs: 250,
  /** Time between two looks at a watched task that changes by itself: its place in the queue. */
  dashboardTaskLookMs: 2_000,
  /** Wait for the history of a task, before its page is shown without. */
  dashboardStoryMs: 300,
  /** Time for which settings are kept: they change by operators' hands. */
  dashboardSettingsMs: 5_000,
  /** Live views at once. A view costs a copy of each update. */
  dashboardLiveViewsMax: 32,
  /** When a refused viewer tries again. */
  dashboardRetryAfterMs: 5_000,
  /** Open connections, live views included: a browser opens six. */
  dashboardConnectionsMax: 1_024,
  /** Bytes that may wait for a slow viewer; then the viewer gets a whole state instead of what it missed. */
  dashboardPendingBytesMax: 1024 * 1024,
  /** Time for which a view's last state is kept for a viewer that comes back. */
  dashboardResumeMs: 60_000,
  /** Time for which events are still followed after the last viewer has left. */
  dashboardFollowMs: 60_000,
  /** Bytes of a request's body: the largest payload, escaped as JSON. */
  dashboardBodyBytesMax: 2 * 1024 * 1024,
  /** Bytes of a refused body that are read and thrown away, so that the browser gets the answer. */
  dashboardUnreadBytesMax: 16 * 1024 * 1024,
  /** Maximum time for a request to arrive. */
  dashboardRequestMs: 30_000,
  /** Characters of a token that a user chooses, at least. */
  dashboardTokenCharactersMin: 16,
  /** Characters of a random token: 36³² values. */
  dashboardTokenCharacters: 32,
  /** Events kept for the live view. */
  dashboardEventsKept: 5_000,
  /** Events of one live message, and of a page. */
  dashboardEventsShown: 500,
  /** …without a number in the request. */
  dashboardEventsShownDefault: 100,
  /** Batches that one request for older events looks through. */
  dashboardEventBatchesMax: 10_000,
  /** Batches that are read when the first viewer comes, for the newest failures and attempts. */
  dashboardBackfillBatchesMax: 500,
  /** Points of the history: 15 minutes of seconds, 6 hours of ten seconds. */
  dashboardSecondsKept: 900,
  dashboardTenSecondsKept: 2_160,
  dashboardTenSecondsMs: 10_000,
  /** Waits that quantiles of one step are taken from, the newest. */
  dashboardWaitsKept: 1_000,
  /** Window of shares, delays and counts per agent, project and resource… */
  dashboardWindowMs: 15 * 60_000,
  /** …in steps of this length. */
  dashboardStepMs: 10_000,
  /** Width of an agent's chart of attempts. */
  dashboardGanttMs: 10 * 60_000,
  /** Attempts kept per agent, and agents, projects and resources with a record. */
  dashboardAttemptsKept: 200,
  dashboardRecordsKept: 1_000,
  /** Assignments of the waterfall. */
  dashboardAssignmentsShown: 200,
  /** Batches before a past decision that a replay begins with: mostly enough for these assignments. */
  dashboardPastBatches: 500,
  /** A moment of the past does not change, but a viewer may ask again. */
  dashboardPastMs: 60_000,
  /** Failures kept of all agents together; the overview shows the newest few. */
  dashboardFailuresKept: 500,
  dashboardFailuresShown: 10,
  /** …and the page of an agent. */
  dashboardAgentFailuresShown: 20,
  /** Tasks whose kind, user and weight are remembered for their later events. */
  dashboardTasksKept: 20_000,
  /** Agents that the page of agents lists. */
  dashboardAgentsShown: 2_000,
  /** Users of the page about fairness, candidates of a waiting task, names in a menu, points of α. */
  dashboardRowsShown: 200,
  dashboardCandidatesShown: 50,
  /** Resources whose waiting requests are ranked: each is a question to the leader. */
  dashboardRankedResources: 8,
  /** Budgets with less than this share left, of which the dashboard asks once a second why the oldest task waits. */
  dashboardAskedBudgets: 8,
  dashboardBudgetLeftMax: 0.1,
  /** Projects with a line of their own in the chart of shares. */
  dashboardSharesShown: 8,
  /** Answers kept for viewers that ask for the same list of tasks, and their age. A search costs the leader up to eight
   *  whole pages. */
  dashboardAnswersKept: 64,
  dashboardListMs: 1_000,
  dashboardSearchMs: 4_000,
  /** Pages of tasks that one search looks through. */
  dashboardSearchPagesMax: 8,
  /** Tasks that one action touches. */
  dashboardActionTasksMax: 10_000,
  /** Tasks of a dry run, and results of an action, that the answer lists. */
  dashboardSampleShown: 20,
  dashboardResultsShown: 100,
  /** Bytes of a payload or result that the page shows. */
  dashboardContentBytesMax: 256 * 1024,
  /** Characters of a search. */
  dashboardSearchCharactersMax: 128,

  // --- the command line -----------------------------------------------------------------------
  /** How long a verb goes on asking: a standby takes over within twice T. */
  verbAskTimeoutMs: 10_000,
  /** Silence of the swarm after which a verb prints "waiting for a leader". */
  verbSilenceMs: 1_500,
  /** Time for which `waggle auth` looks for a coordinator to notify: most credentials are made before one runs. */
  authNotifyMs: 3_000,
  /** Time after which a task that a user waits for at a terminal has its reason shown; also the interval of the
   *  checks. */
  waitReasonMs: 5_000,
  /** How often `status --watch` and the lines of `up` look again: as often as a person does. */
  statusWatchMs: 1_000,
  /** Minimum interval between an agent's log lines about failed attempts. */
  failureNoticeMs: 10_000,
  /** Time after which an agent that has not joined reports that no leader answers. */
  agentWaitNoticeMs: 2_000,
  /** Time as a standby before `up` prints that the coordinator stands by. */
  standbyNoticeMs: 500,
  /** Between two lines of `up` about how many tasks came and went. */
  activityMs: 5_000,
  /** Maximum wait of a verb for a leader that may well not exist. */
  leaderLookMs: 1_000,
  /** Maximum wait for the heartbeat of a leader that does not answer: at the longest T, a leader sends one within a
   *  third of ten seconds. */
  leaderHeardMs: 4_000,
  /** Often enough to look alive on a terminal. */
  progressRedrawMs: 100,
  /** Interval of progress lines without a terminal. */
  progressLineMs: 2_000,
  /** Assumed size of a terminal that does not report its size. */
  terminalColumnsDefault: 80,
  terminalRowsDefault: 24,
  /** Time after which a lone Escape is a key, and not the beginning of an escape sequence. */
  escapeKeyMs: 50,
  /** With a larger difference of clocks, times in tables and logs contradict each other. */
  clockDifferenceMsMax: 2_000,
  /** Files in the demo, with three tasks each: 32 tasks per second, which a busy laptop manages. */
  demoFilesMax: 300,
  /** An agent of the demo reads a whole file into memory. */
  demoFileBytesMax: 16 * 1024 * 1024,
  /** A NUL among the first bytes makes a file binary, as for git and grep. */
  demoProbeBytes: 8 * 1024,
  /** Output of `git ls-files`, in bytes. */
  demoListBytesMax: 64 * 1024 * 1024,
  /** The demo waits for outcomes until then, from the start of its process. Stopping takes some seconds more. */
  demoMs: 40_000,
  /** Part of the demo's time for the last attempts. */
  demoEndMs: 4_000,
  /** Longest time of submission, where the start took no longer than usual. */
  demoSubmitMs: 30_000,
  /** Shortest time of submission, where the start took very long. */
  demoSubmitMsMin: 8_000,
  /** Minimum number of tasks to show changing shares. With fewer no agent is broken. */
  demoTroubleTasksMin: 300,
  /** Time of submission that shows how shares change: an agent is learnt, found broken, and learnt again. */
  demoTroubleMsMin: 15_000,
  /** With fewer tasks, interval between two submits. */
  demoFewTasksEveryMs: 30,
  /** Interval of the check for due tasks. */
  demoStepMs: 100,
  /** Between two pictures on a terminal. */
  demoRedrawMs: 250,
  /** Interval of lines without a terminal. */
  demoLineMs: 3_000,
  /** No attempt of the demo is slowed down to more. */
  demoAttemptMsMax: 2_000,
  /** Attempts to remove the demo's folder while an ending process still writes to it. */
  demoRemoveRetriesMax: 3,
  /** Maximum wait of the demo for its coordinator and agents. */
  demoStartMs: 20_000,
  /** Maximum wait for processes to end before the demo kills them. */
  demoStopMs: 5_000,

  // --- adapters -------------------------------------------------------------------------------
  /** Characters of an answer to a model, some 6,000 tokens: several clients warn or cut at 10,000. */
  mcpAnswerCharactersMax: 20_000,
  mcpErrorCharactersMax: 4_000,
  /** Rows of one table in the answer of the tool `status`: then the other tables have room. */
  mcpStatusRowsMax: 25,
  /** Most events of an answer; few lines are that short. */
  mcpEventsMax: 500,
  /** Wait for a result. Clients give up a request after 60 s by default. */
  mcpWaitSecondsDefault: 30,
  mcpWaitSecondsMax: 3_600,
  /** Interval of progress messages while a call waits; less than a client's time-out. */
  mcpProgressMs: 10_000,
  /** Text of a progress message; clients show a line or two. */
  mcpProgressCharactersMax: 2_000,
  /** A message of a peer over MCP: an escaped payload or result, with room for its envelope. */
  mcpMessageBytesMax: 10 * 1024 ** 2,
  /** Start of an MCP server, which may download itself first. */
  mcpStartMs: 60_000,
  /** A server of before 2026 may ignore the question for its revision. */
  mcpProbeMs: 10_000,
  /** Time-out of a tool's call, the longest that a timer can wait: the attempt's own time-out ends it. */
  mcpCallMs: 2 ** 31 - 1,
  /** Longest time from a NATS request to its reply, by default; few requesters wait as long. */
  servedTimeoutMs: 5 * 60_000,
  /** Open requests of one server; each holds a task, and no more fit the queue of a project. */
  servedRequestsMax: 1_024,
  servedRetryMs: 1_000,
  /** Answers to one request that a server permits: chunks of a streamed result, and the result… */
  servedAnswersMax: 100_000,
  /** …within this time: twice the default time-out. The server remembers each request for so long. */
  servedAnswersMs: 600_000,
  /** Time for the news that a task has expired. */
  servedGraceMs: 5_000,
  /** Interval of an agent's heartbeats, and the number after whose loss it counts as gone (Synadia protocol, 8.2). */
  synadiaHeartbeatMs: 30_000,
  synadiaMissedHeartbeats: 3,
  /** A message of A2A: an escaped payload, with room for its envelope. */
  a2aRequestBytesMax: 2 * 1024 ** 2,
  a2aConnectionsMax: 1_024,
  /** Events of one stream that wait for a slow reader. The last event has the whole result. */
  a2aWaitingEventsMax: 4_096,
  /** A shorter token can be guessed. */
  a2aTokenCharactersMin: 16,
  /** Wait for the card of an agent. */
  a2aStartMs: 10_000,
  /** Wait for an agent to cancel a task. */
  a2aCancelMs: 5_000,
  /** Pause before the next question for a task of an agent, and questions in a row without an answer. */
  a2aPollMs: 1_000,
  a2aPollFailuresMax: 30,
  /** Silence of a foreign agent after which a prompt has failed (Synadia protocol, 6.6). */
  promptIdleMs: 60_000,
  /** Interval of signs of life to a caller, well within its `promptIdleMs`. */
  promptWorkingMs: 20_000,
  /** Text of one message of an answer: escaped, it still fits a message of 1 MiB. */
  promptPartCharactersMax: 32_768,
  /** Questions of an agent in one prompt that are answered; each may start a process. */
  promptQueriesMax: 100,
  /** An answer to such a question: a sentence, not a document. */
  decisionCharactersMax: 16_384,
  /** Wait for the answers of agents to a question who they are. */
  discoveryMs: 2_000,
  /** Agents of one bridge. Each is an agent of the swarm. */
  bridgedAgentsMax: 256,
  /** Instances of foreign agents that a bridge remembers: followed instances, and instances left out. Each sort. */
  bridgedInstancesMax: 4_096,

  // --- simulations ----------------------------------------------------------------------------
  /** Seeds of one command: an interval narrows with the root of their number, so more are useless. */
  simulationSeedsMax: 10_000,
  /** Highest seed: seeds are typed in commands. */
  seedMax: 1_000_000_000,
  /** Virtual time of a seed, `--for`: in less nobody submits anything, and a run of nothing must not look green. */
  tortureForMsMin: 1_000,
  /** More keeps more of the journal in memory than a machine has: some gigabytes in a few hours. */
  tortureForMsMax: 3_600_000,
  /** Range of `--minutes`: from a few seconds for a single seed to a week. */
  tortureMinutesMin: 0.1,
  tortureMinutesMax: 7 * 24 * 60,
  /** More threads than any machine has cores. */
  tortureThreadsMax: 1_024,
  /** A trace is read into memory: about ten million requests. */
  simulationTraceBytes: 512 * 1024 * 1024,
  /** Time before a progress bar appears. */
  progressQuietMs: 500,
} as const;

assert(
  limits.clientPingMs * (limits.clientPingsMax + 1) + limits.connectTimeoutMs < limits.agentLostMs,
  "an agent leaves a silent server before the agent counts as lost",
);
assert(
  limits.leaseTtlMs * (1 - limits.leaseAbortShare) - 2 * limits.heartbeatMs > limits.requestTimeoutMs,
  "a confirmed heartbeat keeps an agent in touch until the next one",
);
assert(
  3 * limits.promptWorkingMs <= limits.promptIdleMs,
  "a caller hears of a working agent several times within its idle limit",
);
assert(
  limits.fullLeaderMsMax >= 2 * limits.baseSyncMs,
  "a leader has the time to make room in a full journal",
);
assert(
  limits.leaseTtlMs >= limits.agentLostMs,
  "a lease is at least as long as the silence after which its agent is lost",
);
assert(
  limits.heartbeatMs * 3 <= limits.unresponsiveSilenceMs && limits.unresponsiveSilenceMs < limits.agentLostMs,
  "two lost heartbeats make no agent unresponsive, and an unresponsive agent is not yet lost",
);
assert(
  limits.leaderTimeoutMsMin <= limits.leaderTimeoutMs && limits.leaderTimeoutMs <= limits.leaderTimeoutMsMax,
  "the default T is within its range",
);
assert(
  limits.leaderTimeoutMsMax * (1 + limits.electionJitterShare) < limits.askTimeoutMs,
  "a client's request outlasts a change of leaders, at the longest T",
);
assert(
  limits.reconnectMsMax < limits.leaderIsolationMs,
  "a leader reconnects to a server that is back before it steps down",
);
assert(limits.heartbeatMs * 3 <= limits.agentLostMs, "two lost heartbeats must not lose an agent");
assert(
  limits.askTimeoutMs < limits.slotAgentForgottenMs,
  "a late request of an agent that left is not taken for a new agent's",
);
assert(
  limits.askTimeoutMs < limits.rememberMsMin,
  "a repeated request finds its task, at the shortest horizon",
);
assert(limits.turnMsMax < limits.turnMsAlarm, "a turn that ends in time raises no alarm");
assert(
  limits.batchBytesMax * 2 <= limits.maxPayloadBytesDefault,
  "a batch fits a message with room to spare",
);
assert(
  limits.turnBytesMax + limits.batchBytesMax <= limits.maxPayloadBytesDefault - 64 * 1024,
  "a full turn and its last command fit one append",
);
assert(
  limits.agentsMax * limits.maxConcurrentMax * 2 <= limits.openAttemptsMax,
  "the capacity of all agents is within the maximum of a limit",
);
assert(
  Number.isSafeInteger(
    limits.agentsMax * limits.maxConcurrentMax * 2 * limits.tokensPerAttemptMax +
      limits.agentsMax * limits.slotLeasesPerAgentMax * limits.tokensPerSlotLeaseMax +
      limits.tokensMax,
  ),
  "a whole budget plus the reservations of all attempts and slots is an exact integer",
);
assert(
  limits.historyStepMs * limits.windowBuckets <= limits.budgetWindowMsMin &&
    limits.historyStepsPerLevel > 2 * limits.windowBuckets,
  "a remembered step is no longer than a bucket of any window that may begin with it",
);
assert(
  limits.historyStepMs * limits.historyStepsPerLevel * (2 ** limits.historyLevelsMax - 1) >=
    limits.budgetWindowMsMax,
  "use is remembered for as long as the longest window",
);
assert(
  limits.tokensPerAttemptDefault <= limits.tokensPerAttemptMax &&
    limits.tokensPerAttemptMax <= limits.tokensMax,
  "the estimate of an attempt is within the maximum of a budget",
);
assert(
  limits.concentrationAssignmentsMin <= limits.concentrationAssignments,
  "an alert needs no more assignments than are remembered",
);
assert(limits.concentrationShareMax < 1, "an agent that gets everything raises an alert");
assert(
  Number.isInteger(limits.bottleneckWindowMs / limits.bottleneckSteps),
  "the window is whole steps of whole milliseconds",
);
assert(
  limits.kindsPerAgentMax < limits.recordsPerAgentMax,
  "an agent's records include every kind that it serves",
);
assert(limits.waitersPerResourceMax <= limits.maxWaitersMax, "the default is within the maximum");
assert(limits.payloadBytesMax < limits.batchBytesMax, "any one task fits a batch");
assert(
  limits.auditRetentionBytes + 2 * limits.baseSpacingBytesMin <=
    limits.journalBytesMax * limits.journalFullShare,
  "the default retention and the batches between two bases leave room for tasks",
);
assert(
  limits.journalFullShare < limits.journalUnassignedShare,
  "new tasks are refused before waiting tasks are held back",
);
assert(
  limits.journalFullRetryMs * 2 <= limits.leaderTimeoutMsMin,
  "a leader finds room before a standby does",
);
assert(limits.baseSliceMs * 2 <= limits.turnMsAlarm, "a slice and its last item raise no alarm");
assert(
  limits.maxPayloadBytesDefault <= limits.journalRecordBytesMax,
  "a file takes every record that a server takes",
);
assert(limits.journalHeartbeatMs * 2 <= limits.journalPullMs, "servers refuse rarer heartbeats");
assert(
  limits.journalHeartbeatMs * limits.journalHeartbeatsMissedMax < limits.leaderTimeoutMs,
  "a standby reads again before it would campaign",
);
assert(
  limits.campaignAskShare < limits.electionJitterShare,
  "one of several standbys is still first, although they ask before they campaign",
);
assert(
  1 / limits.leaderHeartbeatsPerTimeout + 1 / limits.pulsesPerTimeout < limits.leaderLeaseShare,
  "a leader that sends heartbeats in time keeps its lease",
);
assert(
  limits.requestTimeoutMs < limits.askTimeoutMs,
  "one unanswered request does not use up a client's time",
);
assert(
  limits.leaderTimeoutMsMax + 2 * limits.requestTimeoutMs <= limits.termDoubtedMs,
  "a deposed leader's last answers make no client give up a term",
);
assert(
  limits.awaitReadMs * 2 <= limits.requestTimeoutMs,
  "a client that awaits tasks is answered in time, even with a slow journal",
);
assert(
  Number.isSafeInteger(limits.taskWeightMax * 1000 * limits.queuedTasksMax),
  "the weights of a whole queue are summed exactly",
);
assert(limits.queuedTasksPerProjectMax <= limits.queuedTasksMax, "a project's bound lies within the swarm's");
assert(
  limits.brokerStallBytes < limits.brokerPendingBytesMax,
  "a publisher is held back before a reader is disconnected",
);
assert(limits.maxPayloadBytesDefault < limits.brokerStallBytes, "one message never stalls its publisher");
assert(limits.brokerAnswerMs < limits.brokerStartMs, "one unanswered request does not use up a start");
assert(
  limits.execKillGraceMs <= limits.leaseTtlMs * limits.leaseAbortShare,
  "a command is killed before its lease ends",
);
assert(
  limits.agentLogMs < limits.agentAnswerMs,
  "a server permits the answer of an agent as long as the leader waits",
);
assert(
  limits.servedTimeoutMs + limits.servedGraceMs < limits.servedAnswersMs,
  "a server permits the answers of a service until the default time-out",
);
assert(
  limits.agentLogMs < limits.logAskTimeoutMs,
  "a client that asks for logs gets the leader's answer about a silent agent",
);
assert(
  limits.execKillGraceMs < limits.agentStopMs,
  "a stopped agent's commands are killed before the agent answers for them",
);
assert(
  limits.leaderTimeoutMsMax / limits.leaderHeartbeatsPerTimeout < limits.leaderHeardMs,
  "a leader's heartbeat arrives in time",
);
assert(limits.leaderTimeoutMs * 2 < limits.verbAskTimeoutMs, "a verb outlasts a change of leaders");
assert(
  limits.holdMsMin <= limits.holdBackoffMs && limits.holdBackoffMsMax <= limits.holdMsMax,
  "a hold without a given time lies within the bounds of every hold",
);
