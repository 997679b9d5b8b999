// Every bound of the system in one place: unit last in the name, the reason beside it,
// the relations between them asserted at the bottom.

import { assert } from "./assert.ts";

export const limits = {
  // --- messages -------------------------------------------------------------------------------
  /** A task's payload and its result, each. Configurable up to a quarter of the server's max payload. */
  payloadBytesMax: 256 * 1024,
  /** Deeper JSON overflows the stack of `JSON.stringify`; nothing we carry needs more. */
  jsonDepthMax: 64,
  /** Tasks, results or ids in one request: bounds one answer and one turn. */
  itemsPerMessageMax: 1024,
  /** Characters of an error message that is kept with an attempt; the rest is in the agent's log. */
  errorCharactersMax: 1024,
  /** Of a swarm, project or agent id: a token of a subject (the patterns stand in ids.ts). */
  subjectTokenCharactersMax: 64,
  /** Problems of one value that a refusal lists: an array of a thousand wrong items is one mistake. */
  issuesShownMax: 5,
  /** Warnings that one connection remembers to have logged; then it may log one again. */
  warningsLoggedMax: 1_024,
  /** Of the path that a refusal names as the wrong field: it may hold the sender's own text. */
  errorFieldCharactersMax: 200,
  /** Of the name that a coordinator gives itself. */
  coordinatorIdCharactersMax: 128,
  /** Labels of an agent, and characters of each. */
  labelsMax: 32,
  /** Kinds one agent may declare. */
  kindsPerAgentMax: 256,
  /** What a server of default configuration takes in one message; development broker included. */
  maxPayloadBytesDefault: 1024 * 1024,

  // --- the wire -------------------------------------------------------------------------------
  /** First connect, and each attempt to reconnect: a server that takes TCP and says nothing is not there. */
  connectTimeoutMs: 5_000,
  /** Reconnecting starts quick, for a server that restarts, and doubles, for one that stays away. */
  reconnectMs: 50,
  reconnectMsMax: 2_000,
  /** A client asks the server so often whether it lives; so many questions may be open. One that was stopped, or is
   *  out of reach without a word, is left within `clientPingMs * (clientPingsMax + 1)`, and another is tried, after one
   *  try with the same that may take `connectTimeoutMs`: all before an agent is lost. */
  clientPingMs: 1_200,
  clientPingsMax: 2,
  /** What is published while reconnecting is kept up to this; more is lost as on any broken wire. */
  keptPublishBytesMax: 8 * 1024 ** 2,
  /** How long `close` waits for a server to take what is queued. */
  closeFlushMs: 2_000,
  /** Open requests are looked through for expired ones no more often than this; time-outs may be late by it. */
  requestTimeoutGrainMs: 10,
  /** Subjects a routing table remembers the receivers of; all are forgotten when one more would not fit. */
  subjectCacheMax: 8_192,

  // --- development broker and its life --------------------------------------------------------
  /** Longest protocol line, as in nats-server: bounds what an unfinished line may hold. */
  controlLineBytesMax: 4_096,
  /** Output waiting for one client; a slower one is cut off, as by nats-server. */
  brokerPendingBytesMax: 64 * 1024 ** 2,
  /** Beyond this, whoever publishes to the slow client is read no further until it has caught up or… */
  brokerStallBytes: 8 * 1024 ** 2,
  /** …so long has passed: a client that never reads must not stop the others. */
  brokerStallMs: 10,
  brokerConnectionsMax: 16_384,
  brokerSubscriptionsMax: 65_536,
  /** A client that has not said CONNECT by then is cut off. */
  brokerConnectMs: 2_000,
  brokerPingMs: 20_000,
  brokerPingsMax: 2,
  /** A broker that does not say INFO by then does not answer. */
  brokerAnswerMs: 3_000,
  /** From the spawn of a broker, or from meeting a rival who spawns one, until it answers. */
  brokerStartMs: 20_000,
  /** From asking a broker to stop until it is killed. */
  brokerStopMs: 5_000,
  /** A data folder's broker that its coordinator lost for so long is looked at, and started again if it has ended… */
  brokerAwayMs: 250,
  /** …and looked at again after twice as long each time, up to this: one that ends at once is not started in a loop… */
  brokerRestartMsMax: 30_000,
  /** …until a connection to it has held for so long. */
  brokerSteadyMs: 10_000,

  // --- the coordinator's turn -----------------------------------------------------------------
  /** A turn takes no further command beyond it; one command adds at most `batchBytesMax`. */
  turnBytesMax: 256 * 1024,
  /** Attempts, releases or waits one command may end: what has more is closed over several batches. */
  closuresPerCommandMax: 256,
  /** A turn ends here even if more waits, so that its batch commits and answers leave. */
  turnCommandsMax: 4096,
  turnMsMax: 10,
  /** Commands between two looks at the clock: a look costs less than a command, and one command microseconds. */
  turnClockCommands: 64,
  /** No turn may hold the loop longer: heartbeats and timers wait behind it. */
  turnMsAlarm: 50,
  /** One in flight leaves the link idle; three add latency, and nothing to throughput. */
  batchesInFlightMax: 2,
  /** Beyond it, messages are refused with BackpressureError instead of growing the heap. */
  inboxDepthMax: 65_536,
  /** Longest a batch may wait for a definite append outcome before the attempt is repeated. */
  appendTimeoutMs: 2_000,

  /** Pause before an append of unknown outcome is repeated. */
  appendRetryMs: 100,
  /** …and before one that found no room is: some times before a standby would campaign. */
  journalFullRetryMs: 250,

  /** "No such stream", said for so long without a word to the contrary, is meant: servers that fail over say it,
   *  too. */
  streamMissingMs: 5_000,
  /** A batch that is not acknowledged for so long is said to be: servers that fail over take some seconds. */
  unacknowledgedMs: 5_000,
  /** …and so often again. */
  unacknowledgedAgainMs: 60_000,
  /** …and so is whatever a coordinator that starts, or begins anew, misses in the journal or its snapshots. */
  lossPatienceMs: 5_000,
  /** …and by one that begins anew while it runs: whoever leads may be out of everybody's reach for so long, and has
   *  yet to save what the journal lost. */
  lossPatienceRunningMs: 60_000,
  /** …seen so often, each time behind the first for its part of that: a look may wait for a server, and that time says
   *  nothing. */
  lossLooksMin: 5,
  /** What a coordinator keeps of the journal's newest records, to append again what a power failure took: longer than
   *  servers wait by default until they sync (2 min), and as much as a process can spare. */
  recentRecordsMs: 5 * 60_000,
  recentRecordsBytes: 64 * 1024 ** 2,
  /** Coordinators whose announcements are remembered. */
  announcersMax: 64,
  /** An announcement counts for so many T. */
  announcementTimeouts: 2,
  /** …and who announces more than the journal shows is waited for until it was read so often, each time T after the one
   *  before, and did not go on: who does hold more puts it back within 2·T. */
  announcementWaitsMax: 5,
  /** How long a coordinator that starts waits for another to say that it is there. */
  greetingMs: 250,

  // --- leadership -----------------------------------------------------------------------------
  /** T: silence after which a standby campaigns, unless a coordinator is told otherwise. */
  leaderTimeoutMs: 3_000,
  /** Shorter, and a pause of the garbage collector or of a disk would change leaders. */
  leaderTimeoutMsMin: 500,
  /** Longer, and whoever asks gives up before somebody leads. */
  leaderTimeoutMsMax: 10_000,
  /** A standby waits for T and up to this share of it more, so that of several one is first; that two campaign at
   *  once is harmless, since the journal takes one of them. */
  electionJitterShare: 1 / 3,
  /** …and before it campaigns it asks the others for how far they hold the journal, and listens for this share of T. */
  campaignAskShare: 1 / 20,
  /** The leader appends at least once per T / this, so that two losses do not depose it. */
  leaderBeatsPerTimeout: 3,
  /** How often the leader looks at what only time brings: silent agents, its own beat, refusals to sum up. */
  pulseMs: 250,
  /** …and at least so often in T, so that a beat is not late by much of it. */
  pulsesPerTimeout: 12,
  /** A pulse that comes later than this, or than a beat should, says that the process stalled: silence is counted
   *  anew. */
  pulseLateMs: 1_000,
  /** A standby lets the leader answer a query first. */
  standbyAnswerMs: 150,
  /** Queries that wait for that at once; more are left to the leader, or to be asked again. */
  standbyQueriesMax: 1_000,
  /** A leader that has lost its connection to agents and clients for so long, and for T, and writes in the journal all
   *  the while, lets another lead: longer than a server that is back is waited for. */
  leaderDeafMs: 3_000,
  /** A leader that is asked to end and cannot write so ends all the same after this. */
  handOverMs: 5_000,
  /** Subjects of which the live stream remembers the last batch; a forgotten one begins anew at 0. */
  eventSubjectsMax: 50_000,
  /** Refusals are summed up on the record so often. */
  refusalSummaryMs: 1_000,
  /** A leader that cannot show an append sent less than this share of T ago answers nothing definite. */
  leaderTrustShare: 0.8,
  /** Wall clock and journal time may differ by this before the difference is taken up slowly. */
  clockSkewMsMax: 5_000,
  /** How fast a difference is taken up: 1 % a second. */
  clockSlewShare: 0.01,

  // --- agents ---------------------------------------------------------------------------------
  heartbeatMs: 1_000,
  /** H: an agent that sent nothing for so long is lost and its attempts run elsewhere. */
  agentLostMs: 10_000,
  /** An attempt's lease, renewed by each heartbeat that lists it; at least H. */
  leaseTtlMs: 10_000,
  /** The SDK aborts this share of a lease before it could expire. */
  leaseAbortShare: 0.2,
  /** Messages with assignments or grants that an agent keeps until a heartbeat is confirmed; what is more is sent
   *  again. */
  deferredPushesMax: 64,
  /** Heartbeats an agent may lag behind the assignments sent to it before it counts as unresponsive. */
  unresponsiveHeartbeats: 2,
  /** That two processes use one id is shown for so long after the fenced one was last heard. */
  outlivedShownMs: 10 * 60_000,
  /** Silence after which nothing new goes to an agent: it may be dead, and a task would wait for H to find out. */
  unresponsiveSilenceMs: 3_000,
  maxConcurrentMax: 1_024,
  /** Attempts that the answer to a join names as not the agent's: with the longest ids they fit one message. */
  unknownPerJoinMax: 1_024,
  /** What an assignment or an outcome takes of a message beside its payload, result or error: names, ids and a grant's
   *  token. */
  pushItemOverheadBytes: 512,
  agentsMax: 10_000,
  /** Lives of an agent that are known to be fenced: as many processes under one id as anybody starts by mistake. */
  fencedLivesMax: 8,
  /** …and to have ended otherwise: a copy of a join is late by two minutes at most, and a life lasts ten seconds. */
  pastLivesMax: 16,
  /** An agent that left is forgotten after so long; its learnt rates go with it. */
  agentForgottenMs: 24 * 3_600_000,
  /** One that came for slots alone, after so long: nothing was learnt of it and no number given to it, and how its
   *  slot leases ended is remembered without it. Until then a request that was under way meets the life that ended. */
  slotAgentForgottenMs: 60_000,
  /** Result messages one agent has under way: enough to fill the wire, more only makes messages smaller. */
  resultMessagesInFlightMax: 2,
  /** Pause before an agent asks a leader again; doubles up to the second. */
  agentRetryMs: 50,
  agentRetryMsMax: 1_000,
  /** A stopped agent gives its handlers so long to end before it speaks for them… */
  agentStopMs: 3_000,
  /** …and a leader so long to hear that it leaves, before its silence has to say it. */
  agentLeaveMs: 2_000,
  /** How often an agent that drains looks what it waits for, and logs it when that has changed. */
  agentDrainLookMs: 2_000,
  /** An agent that drains and has held nothing for so long leaves, though no leader has heard of the drain: with
   *  `agentLeaveMs` that is 6 s, as long as leaders may take to change. */
  agentDrainUnheardMs: 4_000,
  /** Progress of an agent's attempts is passed on so often; in between the newest report waits. */
  progressMs: 250,
  /** Of the reports that agents send, those a leader listens to, a second for each place: the SDK's, and as many again
   *  for one whose timers are late. */
  progressPerPlaceMax: 8,
  /** Messages of one agent that a leader listens to, a second of each sort, beyond what any agent sends that keeps
   *  to the protocol: a heartbeat a second; a join or a leave, and again after a pause that grows; two messages of
   *  results under way, with all that wait in each. */
  agentMessagesMax: { heartbeats: 20, joins: 20, results: 2_000, "slot-requests": 2_000 },
  /** An agent that goes on sending too much is told of in the log once in a while, not each second. */
  agentFloodQuietMs: 60_000,
  /** Agents and sorts of messages of which is remembered how many came lately. */
  agentBucketsMax: 50_000,
  /** Assignment numbers an agent takes note of beyond the first that is missing: what a leader may have sent
   *  in the two heartbeats until it notices, at 30,000 a second. */
  assignmentsAheadMax: 65_536,
  /** Attempts that were revoked before they arrived, remembered by one agent. */
  earlyRevokesMax: 1_024,
  /** A command that was told to end (TERM) is killed after so long. */
  execKillGraceMs: 2_000,
  /** The end of what a command wrote to stderr, kept for its error. */
  stderrTailBytes: 4 * 1024,
  /** Of what an attempt writes to its log, the end that its agent keeps: some hundred lines. */
  attemptLogBytes: 16 * 1024,
  /** Ended attempts whose logs an agent keeps, also those that wrote nothing: enough for what just failed. */
  endedLogsMax: 1_000,
  /** …and bytes of them all: of 256 attempts that each wrote more than is kept of one. */
  endedLogsBytesMax: 4 * 1024 ** 2,
  /** What attempts write goes to the agent's session at once, up to so many messages in each such stretch of time; what
   *  is more waits for the next: a handler that writes without end is not to fill the session's thread. */
  logMessagesPerFlush: 64,
  logFlushMs: 50,
  /** How long a leader waits for an agent that is asked for logs… */
  agentLogMs: 1_000,
  /** …and a client for all that it asks: a person waits for what may be nowhere. */
  logAskTimeoutMs: 2_000,
  /** Questions for logs that a leader has open with agents; each takes as long as the agent does. */
  agentLogsAskedMax: 64,
  /** Attempts of one task whose logs are shown, the newest. */
  logsShownMax: 3,
  /** Of a line on its descriptor for tokens: a longer one is no number of them, and no more of it is logged. */
  tokensLineCharactersMax: 32,
  /** Of the text an HTTP endpoint answers with when it fails, kept for the error. */
  httpErrorBytes: 1024,
  /** A timer set for longer fires at once. */
  timerMsMax: 2 ** 31 - 1,

  // --- attempts -------------------------------------------------------------------------------
  maxAttemptsDefault: 3,
  maxAttemptsMax: 100,
  /** Refusals by infrastructure cost no attempt, up to so many in a row for one task. */
  infrastructureFailuresMax: 10,
  retryBackoffMs: 1_000,
  retryBackoffMsMax: 300_000,
  /** Default of an attempt's own deadline: a handler that hangs for ever must not hold its slot. */
  attemptTimeoutMs: 3_600_000,
  /** A month: longer than any attempt we know of, and still a time at which one that hangs is given up. */
  attemptTimeoutMsMax: 30 * 24 * 3_600_000,
  /** A tenth of a heartbeat: progress that comes more often is no sign of anything. */
  stallMsMin: 100,
  stallMsMax: 24 * 3_600_000,
  /** An attempt that its agent cannot begin, though it has a place for it by the leader's account, counts as silent
   *  after so long: handlers of the agent's earlier life may never end. */
  stallWaitMs: 60_000,

  // --- queues ---------------------------------------------------------------------------------
  queuedTasksMax: 1_000_000,
  queuedTasksPerProjectMax: 250_000,
  /** What a refused submitter is told to wait when nothing better is known. */
  retryAfterMs: 500,
  /** What a submitter is told to wait where only the end of open attempts makes room in a budget: as long as attempts
   *  that use tokens take. */
  budgetRetryMs: 5_000,
  /** Ended tasks stay for idempotency and `waggle task` this long or this many, unless the policy says otherwise. */
  rememberedTasksDefault: 1_000_000,
  rememberMsDefault: 24 * 3_600_000,
  /** Where many are to be forgotten at once, so many with each task that ends: a turn is not to take long. */
  forgottenPerEndMax: 256,
  /** Clients waiting for outcomes: ids one coordinator keeps in memory. */
  awaitedTasksMax: 1_000_000,
  /** …and how many of them may wait for one task. */
  awaitersPerTaskMax: 64,
  /** Of a client's inbox: two ids of the longest with a prefix. Each awaited task keeps one. */
  inboxCharactersMax: 192,
  /** Projects named in a refusal of an id that several have: enough to see what is meant. */
  ambiguousProjectsShown: 5,
  /** A task's cost, and a slot lease's: a whole queue of the heaviest, in thousandths, still adds up exactly. */
  taskWeightMax: 1_000_000,
  /** Room for any scale of priorities that anybody thinks in, on both sides of 0. */
  priorityMagnitudeMax: 1_000_000,
  /** Known kinds that a mistyped one is compared with: a warning must not hold up a turn. */
  nearMissKindsMax: 1_000,

  /** Projects, and users of one project, that state keeps counters for; idle ones give way to new ones. */
  projectsMax: 10_000,
  usersPerProjectMax: 10_000,

  // --- clients --------------------------------------------------------------------------------
  /** One question to a leader; a journal's append may stall for several seconds when a server fails over. */
  requestTimeoutMs: 5_000,
  /** A question is repeated, with the same ids, for so long unless the asker says otherwise. */
  askTimeoutMs: 30_000,
  /** Pause before a question is repeated; doubles up to the second. */
  askBackoffMs: 25,
  askBackoffMsMax: 1_000,
  /** Enough to fill the wire while answers are on their way; more only makes messages smaller. */
  submitMessagesInFlightMax: 4,
  /** Submits whose time is over within so long of each other are told in one look at all that wait. */
  submitGiveUpMs: 10,
  /** …or so long for each that waits, where that is more: a look passes all of them. */
  submitGiveUpMsPerTask: 0.002,
  /** Tasks one connection holds that are not yet accepted; as many as a project may queue. */
  pendingSubmitsMax: 250_000,
  /** `submitMany` reads ahead so many tasks and so many bytes. */
  submitWindowTasksMax: 4_096,
  submitWindowBytesMax: 8 * 1024 * 1024,
  /** A term that was heard of is given up when leaders have answered from lower ones for so long, and nobody from it:
   *  longer than a deposed leader may take itself for the leader. */
  termDoubtedMs: 30_000,
  /** A task waited for is asked after again so often, in case its notice was lost… */
  awaitRefreshMs: 5_000,
  /** …but no more than so many at a time: a leader has other things to do. */
  awaitRefreshTasksMax: 4_096,
  /** A connection that is closed lets its agents finish for so long, then stops them: a program that ends is in
   *  no hurry, but a person is. */
  closeDrainMs: 5_000,
  /** A follower of the journal looks by itself so often, in case nobody told it. */
  journalPollMs: 2_000,

  // --- whose turn -----------------------------------------------------------------------------
  /** A project granted nothing for so long goes first, once: the window of the budget document's guarantee. */
  guaranteeMs: 3_600_000,
  /** Ticks of waiting, for each one that waits beside it, after which somebody goes next. */
  starvationLimitTicksPerWaiting: 20,
  /** The same for a set of resources where the policy has no starvation limit: as many as with the starvation limit of
   *  our rules. */
  setStarvationLimitTicksPerWaiting: 20,
  /** What nobody said and nothing taught, for a first attempt of a kind. */
  tokensPerAttemptDefault: 1_000,
  /** What one attempt may be said to take, by its submitter, its agent or the policy's default: what all places of
   *  all agents hold back at once is still an exact integer. */
  tokensPerAttemptMax: 400_000_000,
  /** Steps in which a budget's window rolls: its error is one of them at most. */
  windowBuckets: 60,
  /** Of what is remembered of use, so that a window of any length can begin from it (state/use-history.ts): the
   *  finest step is within a bucket of the shortest window… */
  historyStepMs: 16,
  /** …so many steps before they double in length keep each within 1/60 of its age… */
  historyStepsPerLevel: 128,
  /** …and so many levels reach further back than the longest window. */
  historyLevelsMax: 24,
  /** Weight of the newest report in a kind's mean of tokens. */
  tokensLearningShare: 0.3,
  /** A task's estimate is multiplied by no more than this, however far off those of its kind were. */
  estimateFactorMax: 1_000,
  /** An attempt costs at most so many times its weight, however wrong its estimate of tokens was. */
  costRatioMax: 1_000,
  /** Lost attempts whose report, should it come after all, is still charged. */
  unchargedAttemptsMax: 100_000,

  // --- what operators set ---------------------------------------------------------------------
  /** Credit weights and importances: a share below a thousandth of the usual is better said with `pause`, and
   *  the quotient of any cost and weight keeps its digits. */
  settingWeightMin: 0.001,
  settingWeightMax: 1_000_000,
  /** Of a budget or a rate: what it allows, plus all that can be held back at once, stays an exact integer. */
  tokensMax: 1_000_000_000_000,
  /** A step of the window (`windowBuckets`) takes several turns… */
  budgetWindowMsMin: 1_000,
  /** …and nobody budgets for more than a year. */
  budgetWindowMsMax: 366 * 24 * 3_600_000,
  /** More than all places of all agents: a limit above it limits nothing. */
  openAttemptsMax: 100_000_000,
  slotsPerResourceMax: 100_000,
  /** The most that `maxWaiters` may be set to: each waiter is scored at each release. */
  maxWaitersMax: 10_000,
  /** λ beyond it scores every agent with a backlog as good as nothing. */
  lambdaMax: 100,
  /** Longer than a queue as long as may be takes to pass. */
  starvationLimitTicksMax: 1_000_000,
  guaranteeMsMin: 1_000,
  guaranteeMsMax: 31 * 24 * 3_600_000,
  /** Whoever asks again does so within `askTimeoutMs`, and must be known then. */
  rememberMsMin: 60_000,
  rememberMsMax: 31 * 24 * 3_600_000,
  rememberedTasksMin: 1_000,
  /** Some 300 bytes each, and as many lines of a snapshot. */
  rememberedTasksMax: 10_000_000,
  /** Rows that are kept because somebody set something: bounds on what can be set. */
  kindsSetMax: 10_000,
  resourcesMax: 1_000,
  ratesMax: 1_000,

  // --- learning -------------------------------------------------------------------------------
  /** Weight of the swarm's rate and latency for the kind in an agent's estimates, in attempts. */
  priorAttempts: 8,
  /** What a kind nobody has tried yet is taken to succeed at. */
  priorSuccessRate: 0.9,
  /** An attempt counts half after so many later ones of the same agent and kind. */
  forgetHalfLifeAttempts: 50,
  /** …or after so much journal time, so that a repaired agent recovers. */
  forgetHalfLifeMs: 10 * 60_000,
  /** Kinds that nobody uses of which something is still remembered: those that fell idle last. */
  idleKindsMax: 10_000,
  /** Kinds of which one agent's outcomes are remembered: all it serves, and as many that it served before. */
  recordsPerAgentMax: 512,
  /** An agent's success rate counts below the swarm's only beyond this many standard errors: one failure among many
   *  successes must not lock an equal agent out. */
  successErrorsTolerated: 0.5,
  /** An agent counts as slower only beyond this, in powers of two: 2^0.1 is 7 %… */
  slownessToleratedBits: 0.1,
  /** …and this many standard errors of its own mean: latencies that vary must not lock an equal agent out. */
  slownessErrorsTolerated: 1.5,
  /** Variance of the log₂ of latencies that is taken for an agent with few attempts: factors of ½ to 2 are common. */
  priorLatencySpread: 1,
  /** One latency counts as at most 2² = 4 times what was expected, or as a quarter of it. */
  latencyOutlierBits: 2,
  /** A latency counts half after so much journal time, and a slow agent without outcomes is probed then. Longer than
   *  for outcomes: each probe costs a slow attempt, and a long task takes minutes. */
  forgetLatencyHalfLifeMs: 4 * 60 * 60_000,
  /** A slow agent is probed after so many attempts of the kind by the swarm… */
  probeAttempts: 8,
  /** …doubled with each slow probe, so often: every 16,384 attempts at last, some 0.1 % of them for 16 slow agents. */
  probeStepMax: 11,
  /** Attempts before an agent may be suspended for a kind. */
  suspendAttemptsMin: 10,
  /** Suspended when success falls under this share of the swarm's rate. */
  suspendShare: 0.25,
  /** First probe of a suspended agent; doubled on each failed probe. */
  suspendMs: 5_000,
  suspendMsMax: 10 * 60_000,

  // --- slots ----------------------------------------------------------------------------------
  /** `maxWaiters` of LOCO: one more that would wait for the same resource is refused. */
  waitersPerResourceMax: 100,
  /** Slots one slot lease may ask for, repeated names included: each is looked at whenever one is free. */
  slotsPerLeaseMax: 16,
  /** Slot leases one agent may hold or wait for: a heartbeat lists them all. */
  slotLeasesPerAgentMax: 1_024,
  /** Holders, and waiters, of one resource that `status` names. */
  slotPartiesShownMax: 16,
  /** Ended handles that are remembered, so that releasing twice is told from releasing what never was. */
  endedHandlesMax: 65_536,
  /** A month, as of an attempt: whoever would wait longer for a slot says no time-out at all. */
  acquireTimeoutMsMax: 30 * 24 * 3_600_000,
  /** An agent that gives up waiting by its own clock does so this much after the journal's should have: the
   *  journal's verdict comes first where a leader is there to give it. */
  acquireGraceMs: 2_000,

  // --- watching the load -----------------------------------------------------------------------
  /** Assignments of a kind that a concentration alert looks at: recent enough for a repaired agent to end the alert. */
  concentrationAssignments: 1_000,
  /** Fewest assignments that an alert is raised on. The share of 200 has a standard error of 0.035 at most: chance
   *  alone does not carry an even share over the threshold. */
  concentrationAssignmentsMin: 200,
  /** The threshold of n agents is 2/n and this: the better of a few agents may get twice its even share. */
  concentrationSlack: 0.2,
  /** Highest threshold: 2/n + 0.2 is above 1 for two agents, and an alert on their kind could never be raised. */
  concentrationShareMax: 0.95,
  /** Kinds whose assignments are watched, those assigned last: at most some 60 KB each, where each has a thousand
   *  agents. */
  concentrationKindsMax: 1_000,
  /** An alert that has not held for so long has ended: one that comes and goes is said twice a minute at most. */
  concentrationQuietMs: 60_000,
  /** Alerts that `status` shows, and kinds that one agent serves alone. */
  concentrationAlertsShownMax: 16,
  /** Of this much of the past is said how long agents were at their limit while their kinds waited: long enough to
   *  be no moment's crowd, short enough to see what helped. */
  bottleneckWindowMs: 10 * 60_000,
  /** …in so many steps, kept for each agent. */
  bottleneckSteps: 10,
  /** Events that `waggle events` prints without flags, and the most that --tail holds in memory. */
  eventsTailDefault: 50,
  eventsTailMax: 100_000,
  /** Rows of each table that `waggle status` lists without --all: some tables fit a screen together. */
  statusRowsShown: 20,
  /** Kinds of an agent that it names there. */
  statusKindsShown: 3,
  /** Queues of which it says why their tasks wait: the head stays within a screen. */
  statusReasonsMax: 3,
  /** Bottlenecks that `status` shows, the worst first. */
  bottlenecksShownMax: 5,

  // --- receipts and rounds ---------------------------------------------------------------------
  /** Bytes of a receipt. */
  receiptBytesMax: 512,
  /** Agents that a receipt shows: the winner and the next two. */
  receiptCandidatesMax: 3,
  /** As much of a queue's name stands in a receipt before a candidate more does. */
  receiptQueueBytesMin: 24,

  /** Steps of journal time in which forgetting in time, and what the swarm expects of a kind, are taken up. */
  rateEpochMs: 5_000,
  /** However slow an agent is, the factor for speed leaves it this much of its score. */
  speedFactorMin: 1 / 16,
  /** Rankings of agents kept beyond twice as many as there are queues: making one costs as much as it has agents. */
  idlePoolsMax: 64,
  /** Tasks of one user that are looked at for one that fits a budget. */
  budgetLookAhead: 16,

  // --- journal --------------------------------------------------------------------------------
  /** The most one command may put into a batch: half of the server's max payload. */
  batchBytesMax: 512 * 1024,
  journalBytesMax: 10 * 1024 ** 3,
  /** The largest record a file journal takes: what a server's max payload is there. */
  journalRecordBytesMax: 8 * 1024 ** 2,
  /** A file journal is read through a window of this size… */
  journalReadWindowBytes: 1024 * 1024,
  /** …and one record of it through a smaller one, as big as what lies between two known places. */
  journalIndexSpacingBytes: 256 * 1024,
  /** The holder of a folder's lock that does not say who it is by then does not answer. */
  lockAnswerMs: 1_000,
  /** One pull from a stream: enough to hide the round trip, and no more than a reader keeps in memory. */
  journalPullBytes: 4 * 1024 ** 2,
  journalPullRecords: 1_024,
  /** A pull waits so long for records; a server answers for it with heartbeats meanwhile… */
  journalPullMs: 30_000,
  journalHeartbeatMs: 500,
  /** …and a pull is made anew when so many in a row stay away. */
  journalHeartbeatsMissedMax: 3,
  /** A stream's reader that went away without a word is forgotten by the server. */
  journalReaderIdleMs: 30_000,
  /** A stream's reader asks again after so long: servers that fail over drop questions without a word. */
  journalAskMs: 1_000,
  /** Pause before a stream that does not answer is asked again; doubles up to the second. */
  journalRetryMs: 50,
  journalRetryMsMax: 1_000,
  /** Longest a stream may stay away before opening it fails: fail-overs were seen to take 8.8 s… */
  journalOpenMs: 10_000,
  /** …and before a replay gives up, which has more to lose. */
  journalSilenceMsMax: 30_000,
  /** Seals of a segment that a server acknowledged and does not show, before the segment counts as sealed and damaged.
   *  The pauses between them add up to half a second. */
  sealsUnshownMax: 5,
  /** A record that is not found between others is gone when it is not found for so long: a server that has just
   *  taken over may not know what it has. */
  journalGapMs: 3_000,
  /** At this share of max_bytes accepting stops; results and terms go on. */
  journalFullShare: 0.85,
  /** …and at this one assigning: what is left is for the results of what runs, and for the leader's own records. */
  journalUnassignedShare: 0.92,
  /** What a stream adds to a record: its subject, its headers, its own bookkeeping; an estimate between two looks. */
  journalRecordOverheadBytes: 128,
  /** While the journal is full: pause before it is looked again whether what stands in snapshots may go. */
  journalRoomRetryMs: 2_000,
  /** A standby leaves a leader to lead that finds no room for so long: twice what it takes until it may purge by a
   *  snapshot that it makes. */
  fullLeaderMsMax: 240_000,
  /** Batches read from a journal in one page of a query, in bytes. */
  queryPageBytesMax: 256 * 1024,
  /** Pages read from a journal at the same time, each by a reading of its own: enough to hide the way to a server, and
   *  too few to hold up appends. A reading is a consumer on a NATS server, which keeps some for other readers. */
  pageReadsAtOnce: 4,
  /** …and pages that wait for that: at some milliseconds a page, whoever comes last is served within a second. */
  pageReadsWaitingMax: 64,
  /** A reading of pages asks for so much ahead: two pages, so that a reader that goes on finds the next one there. */
  pageAheadBytes: 512 * 1024,
  /** A reading that no page was taken from for so long is closed: a reader that goes on asks sooner. */
  journalReadingIdleMs: 2_000,
  /** A page answers the same question for so long: a flood of one question costs one read a second… */
  pageSharedMs: 1_000,
  /** …of so many pages, 8 MiB. */
  pagesSharedMax: 32,
  /** What is read from the journal for clients of one project, and of all, in a second: as fast as one reader goes by
   *  itself, and a fifth of what two cores could read. */
  pageBytesPerSecond: 8 * 1024 ** 2,
  pageBytesPerSecondOfAll: 16 * 1024 ** 2,
  /** …and so much of that may be taken at once, after a quiet time. */
  pageBurstMs: 2_000,
  /** What a page costs at least, in bytes: the way of a question and of its answer. */
  pageCostMin: 4 * 1024,
  /** What a record costs beside its bytes: some 10 µs of the server's time and as many of the coordinator's. */
  recordCost: 512,
  /** Projects of which it is known how much was read lately: as many as state knows, and all together. */
  readBudgetsMax: 10_001,
  /** A reader that is refused asks again no sooner. */
  pageRetryMsMin: 50,
  /** Single records read at the same time, for those who await how tasks ended… */
  outcomeReadsAtOnce: 16,
  /** …and reads that wait for that, each for as long as `awaitReadMs` lets it. */
  outcomeReadsWaitingMax: 1_024,
  /** Refused reads are told of in the log so often, with how many there were. */
  readsRefusedQuietMs: 60_000,
  /** Agents told of in the answer why a task waits, in bytes: some two thousand, those that serve its kind first. */
  explainedAgentsBytesMax: 256 * 1024,
  /** Users among whom that answer looks for one for whom room is kept in a budget, and different demands about which
   *  it asks all agents: without them one answer holds up the leader as long as users times agents take. */
  explainedUsersMax: 10_000,
  explainedDemandsMax: 16,
  /** Names of one sort in a filter of tasks. */
  filterNamesMax: 64,
  /** Tasks in one page of a list, unless it is asked for otherwise, and at most. */
  tasksPageDefault: 50,
  tasksPageMax: 1_024,
  cursorCharactersMax: 128,
  /** Lists of tasks that are made or wait to be made; each looks at every task. */
  taskScansMax: 16,
  /** A scan of tasks holds the loop so long at a time, and leaves it as long: turns are taken in between. */
  taskScanSliceMs: 2,
  /** Requests to retry tasks that wait while the journal is read for another. */
  retriesWaitingMax: 64,
  /** Payloads of tasks to be retried that are read from the journal at the same time. */
  retryReadsAtOnce: 8,
  /** Messages of a bulk retry or cancel that a client has under way at once: of several projects, or of many tasks. */
  bulkMessagesAtOnce: 4,
  /** Questions about single tasks that a bulk verb has under way at once. */
  bulkQueriesAtOnce: 32,
  /** Tasks of whose retry a client remembers, so that an older ending is not taken for the newest. */
  retriedTasksMax: 10_000,
  /** Payloads of tasks to be retried that are held at once, in characters: what one turn takes. */
  retryBytesMax: 512 * 1024,
  /** Reading how tasks ended, for one who awaits them: what is not read by then is asked about again. */
  awaitReadMs: 2_000,
  /** An outcome that is asked for again and again and not found is said to be lost after so long: by then a leader has
   *  found the gap, saved its state, and said where the audit begins, which is the better answer. */
  outcomeMissMs: 10_000,
  /** Batches noted as not found, so that it is known for how long they are not; beyond, the oldest are forgotten. */
  missedBatchesMax: 1_000,
  /** Decoded batches kept for clients that ask how tasks ended. */
  recentBatchesMax: 16,
  /** A server that keeps a stream beats each second; one that its leader has not heard for so long is told as away. The
   *  leader itself calls it so after 10 s, and gives up its lead after some more. */
  replicaSilentMs: 5_000,
  /** A record in the journal that no coordinator wrote is warned of for so long after it was met: by then somebody
   *  has looked, and most likely knows who wrote it. */
  foreignRecordShownMs: 24 * 3_600_000,
  /** How often room in the journal is looked at. */
  journalUsageMs: 5_000,

  /** Hashes of the newest batches that a segment's `Opened` repeats: a standby that is at most so far behind can
   *  compare what it holds. About 12 KiB. */
  openedHashesMax: 256,
  /** Of the random name of a coordinator's session: no two are the same. */
  lifeCharacters: 12,
  /** Places behind damage where the reading of a segment begins again, for `waggle journal recover`: what is behind the
   *  last one counts as unreadable. */
  salvagedGapsMax: 1_000,
  /** Hashes of the newest batches that a coordinator keeps: two copies of a log that part earlier count as different.
   *  */
  recentHashesMax: 4_096,

  // --- compaction -----------------------------------------------------------------------------
  /** A base is due when the batches behind the newest base outweigh it so often: a fifth of all writes is bases… */
  baseOutweighedTimes: 4,
  /** …and have so many bytes, which a restart reads in some seconds. */
  baseSpacingBytesMin: 64 * 1024 ** 2,
  /** Batches copied into the next segment together: enough to hide the way to a server, and 1 MiB in memory. */
  copiesAtOnceMax: 64,
  copiesAtOnceBytes: 1024 * 1024,
  /** So few batches the leader copies itself, while it takes no turn for some milliseconds. */
  copiesLeftFew: 16,
  /** …and after so many rounds the leader copies all the rest: batches come as fast as they are copied. */
  copyRoundsMax: 50,
  /** How often a maker asks whether the leader committed a batch. */
  committedLookMs: 10,
  /** Damage met so often in a row is no fail-over of a server: the leader takes the lead again. */
  damagesMax: 2,
  /** How often a leader looks for segments that are old enough to be removed. */
  retentionLookMs: 60_000,
  /** A segment found faulty counts as faulty after so many looks… */
  faultLooksMin: 6,
  /** …each so long after the one before: a server that takes over knows its newest records by then. */
  faultLookMs: 500,

  // --- snapshots ------------------------------------------------------------------------------
  /** A chunk of a snapshot: small enough to be hashed within a millisecond, large enough that a million tasks are some
   *  thousand chunks, whose places and hashes fit the manifest with room to spare. */
  snapshotChunkBytesMax: 512 * 1024,
  /** …or this share of the room that the journal has, so that a small one can be purged in time. */
  snapshotJournalShare: 1 / 8,
  /** …or so long after the last: what is older than the audit's retention goes, also where little happens. */
  snapshotMs: 24 * 3_600_000,
  /** While the journal is short of room, so often: each lets go what stands before the one before it. */
  snapshotShortMs: 30_000,
  /** A server that keeps streams in its page cache has synced what has stood for so long (by default it does every two
   *  minutes): a power failure leaves it. */
  snapshotSyncMs: 120_000,
  /** A snapshot that failed is tried again after so long; doubles. */
  snapshotRetryMs: 5_000,
  snapshotRetryMsMax: 300_000,
  /** What is kept of the journal for those who read it, unless an operator says otherwise: so much that the room which
   *  a journal has by default holds it. */
  auditRetentionMs: 7 * 24 * 3_600_000,
  auditRetentionBytes: 7 * 1024 ** 3,
  /** Who keeps less has said that results and stories need not be read, and is told so: they may be gone before whoever
   *  submitted a task comes back for its result. */
  auditRetentionMsLittle: 3_600_000,
  auditRetentionBytesLittle: 16 * 1024 ** 2,
  /** Reading or writing a snapshot leaves the loop to others after so long: a quarter of a turn's alarm, so that the
   *  one line or record that comes then does not raise it. */
  snapshotSliceMs: 12,
  /** Rows of a snapshot that are worked on between two looks whether a slice is over, where a row takes
   *  microseconds. */
  snapshotStepRows: 1_024,

  // --- the command line -----------------------------------------------------------------------
  /** How long a verb goes on asking: a standby takes over within twice T. */
  verbAskTimeoutMs: 10_000,
  /** Silence after which a verb says that it waits for a leader. */
  verbSilenceMs: 1_500,
  /** A task that one waits for at a terminal and that does not run by then has its reason told, and is looked at again
   *  as often. */
  waitReasonMs: 5_000,
  /** How often `status --watch` and the lines of `up` look again: as often as a person does. */
  statusWatchMs: 1_000,
  /** An agent that has not joined by then tells its person that no leader answers. */
  agentWaitNoticeMs: 2_000,
  /** A coordinator that leads sooner says nothing of the moment in which it stood by. */
  standbyNoticeMs: 500,
  /** Between two lines of `up` about how many tasks came and went. */
  lifeLineMs: 5_000,
  /** Longest a verb asks whether somebody leads when the answer may well be no. */
  leaderLookMs: 1_000,
  /** Longest that is listened for a leader which does not answer: at the longest T it announces itself within a third
   *  of ten seconds. */
  leaderHeardMs: 4_000,
  /** Often enough to look alive on a terminal. */
  progressRedrawMs: 100,
  /** Between two progress lines where there is no terminal to redraw one. */
  progressLineMs: 2_000,
  /** What a terminal that does not tell its width is taken to have. */
  terminalColumnsDefault: 80,
  /** Clocks further apart make times in tables and logs contradict each other. */
  clockDifferenceMsMax: 2_000,
  /** Files the demo works on, three tasks each: 32 tasks per second, which a busy laptop manages. */
  demoFilesMax: 300,
  /** An agent of the demo reads a whole file into memory. */
  demoFileBytesMax: 16 * 1024 * 1024,
  /** A NUL among the first bytes makes a file binary, as for git and grep. */
  demoProbeBytes: 8 * 1024,
  /** Names that `git ls-files` may print, in bytes. */
  demoListBytesMax: 64 * 1024 * 1024,
  /** The demo waits for outcomes until then, from the start of its process. Stopping takes some seconds more. */
  demoMs: 40_000,
  /** Of these, for the last attempts. */
  demoEndMs: 4_000,
  /** Longest time of submission, where the start took no longer than usual. */
  demoSubmitMs: 30_000,
  /** Shortest time of submission, where the start took very long. */
  demoSubmitMsMin: 8_000,
  /** Tasks that show how shares change. With fewer no agent is broken. */
  demoTroubleTasksMin: 300,
  /** Time of submission that shows how shares change: an agent is learnt, found broken, and learnt again. */
  demoTroubleMsMin: 15_000,
  /** Fewer tasks are submitted one each of so many milliseconds. */
  demoFewTasksEveryMs: 30,
  /** Between two looks at which tasks are due. */
  demoStepMs: 100,
  /** Between two pictures on a terminal. */
  demoRedrawMs: 250,
  /** Between two lines where there is no terminal. */
  demoLineMs: 3_000,
  /** No attempt of the demo is slowed down to more. */
  demoAttemptMsMax: 2_000,
  /** Tries to remove the demo's folder while a process that ends still writes there. */
  demoRemoveRetriesMax: 3,
  /** Longest the demo waits for its coordinator and agents to be there. */
  demoStartMs: 20_000,
  /** Longest it waits for them to leave before it kills them. */
  demoStopMs: 5_000,

  // --- simulations ----------------------------------------------------------------------------
  /** Seeds of one command: an interval narrows with the root of their number, nobody needs more. */
  simulationSeedsMax: 10_000,
  /** Highest seed: they are written in commands. */
  seedMax: 1_000_000_000,
  /** Virtual time of a seed, `--for`: in less nobody submits anything, and a run of nothing must not look green. */
  tortureForMsMin: 1_000,
  /** More keeps more of the journal in memory than a machine has: some gigabytes in a few hours. */
  tortureForMsMax: 3_600_000,
  /** What `--minutes` may ask for: from a few seconds, in which one seed is run, to a week. */
  tortureMinutesMin: 0.1,
  tortureMinutesMax: 7 * 24 * 60,
  /** More threads than any machine has cores. */
  tortureThreadsMax: 1_024,
  /** A trace is read into memory: about ten million requests. */
  simulationTraceBytes: 512 * 1024 * 1024,
  /** What is done by then shows no bar. */
  progressQuietMs: 500,
} as const;

assert(
  limits.clientPingMs * (limits.clientPingsMax + 1) + limits.connectTimeoutMs < limits.agentLostMs,
  "an agent leaves a server that no longer answers before it is given up",
);
assert(
  limits.leaseTtlMs * (1 - limits.leaseAbortShare) - 2 * limits.heartbeatMs > limits.requestTimeoutMs,
  "an agent whose heartbeat was confirmed just now is in touch",
);
assert(
  limits.fullLeaderMsMax >= 2 * limits.snapshotSyncMs,
  "a leader has the time to make a full journal some room",
);
assert(limits.leaseTtlMs >= limits.agentLostMs, "a lease outlives the silence that declares its agent lost");
assert(
  limits.heartbeatMs * 3 <= limits.unresponsiveSilenceMs && limits.unresponsiveSilenceMs < limits.agentLostMs,
  "two lost heartbeats make nobody unresponsive, and the unresponsive are not yet lost",
);
assert(
  limits.leaderTimeoutMsMin <= limits.leaderTimeoutMs && limits.leaderTimeoutMs <= limits.leaderTimeoutMsMax,
  "the default T is within what may be set",
);
assert(
  limits.leaderTimeoutMsMax * (1 + limits.electionJitterShare) < limits.askTimeoutMs,
  "whoever asks outlasts a change of leaders, at the longest T there may be",
);
assert(
  limits.reconnectMsMax < limits.leaderDeafMs,
  "a leader whose server was away is back before it lets another lead",
);
assert(limits.heartbeatMs * 3 <= limits.agentLostMs, "two lost heartbeats must not lose an agent");
assert(
  limits.askTimeoutMs < limits.slotAgentForgottenMs,
  "what an agent that left still asks is not taken for a new one's",
);
assert(
  limits.askTimeoutMs < limits.rememberMsMin,
  "whoever asks again is known, however little is remembered",
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
  "every place there can be is within what may be set",
);
assert(
  Number.isSafeInteger(
    limits.agentsMax * limits.maxConcurrentMax * 2 * limits.tokensPerAttemptMax + limits.tokensMax,
  ),
  "what every place holds back at once, beside a whole budget, is counted exactly",
);
assert(
  limits.historyStepMs * limits.windowBuckets <= limits.budgetWindowMsMin &&
    limits.historyStepsPerLevel > 2 * limits.windowBuckets,
  "a remembered step is no longer than a bucket of a window that it may stand at the beginning of",
);
assert(
  limits.historyStepMs * limits.historyStepsPerLevel * (2 ** limits.historyLevelsMax - 1) >=
    limits.budgetWindowMsMax,
  "use is remembered for as long as the longest window",
);
assert(
  limits.tokensPerAttemptDefault <= limits.tokensPerAttemptMax &&
    limits.tokensPerAttemptMax <= limits.tokensMax,
  "an attempt is said to take no more than a budget may hold",
);
assert(
  limits.concentrationAssignmentsMin <= limits.concentrationAssignments,
  "an alert is raised on assignments that are remembered",
);
assert(limits.concentrationShareMax < 1, "an agent that gets everything raises an alert");
assert(
  Number.isInteger(limits.bottleneckWindowMs / limits.bottleneckSteps),
  "the window is whole steps of whole milliseconds",
);
assert(limits.kindsPerAgentMax < limits.recordsPerAgentMax, "an agent remembers all it serves");
assert(limits.waitersPerResourceMax <= limits.maxWaitersMax, "the default is within what may be set");
assert(limits.payloadBytesMax < limits.batchBytesMax, "any one task fits a batch");
assert(
  limits.auditRetentionBytes + 2 * limits.baseSpacingBytesMin <=
    limits.journalBytesMax * limits.journalFullShare,
  "what is kept by default, and what comes between bases, leaves room for tasks",
);
assert(
  limits.journalFullShare < limits.journalUnassignedShare,
  "tasks are refused before those that wait are held back",
);
assert(
  limits.journalFullRetryMs * 2 <= limits.leaderTimeoutMsMin,
  "a leader finds room before a standby does",
);
assert(limits.snapshotSliceMs * 2 <= limits.turnMsAlarm, "a slice and what ends it raise no alarm");
assert(limits.maxPayloadBytesDefault <= limits.journalRecordBytesMax, "a file takes what a server takes");
assert(limits.journalHeartbeatMs * 2 <= limits.journalPullMs, "servers refuse rarer heartbeats");
assert(
  limits.journalHeartbeatMs * limits.journalHeartbeatsMissedMax < limits.leaderTimeoutMs,
  "a standby reads again before it would campaign",
);
assert(
  limits.pulseMs + limits.leaderTimeoutMsMax * limits.campaignAskShare < 2 * limits.standbyNoticeMs,
  "a standby whose leader's silence has ended campaigns before it says that another coordinator leads",
);
assert(
  limits.campaignAskShare < limits.electionJitterShare,
  "of several standbys that ask before they campaign one is still first",
);
assert(
  1 / limits.leaderBeatsPerTimeout + 1 / limits.pulsesPerTimeout < limits.leaderTrustShare,
  "a leader that beats in time keeps its trust",
);
assert(
  limits.requestTimeoutMs < limits.askTimeoutMs,
  "one unanswered question does not use up an asker's time",
);
assert(
  limits.leaderTimeoutMsMax + 2 * limits.requestTimeoutMs <= limits.termDoubtedMs,
  "a deposed leader's last answers, to questions asked in its time, give up no term",
);
assert(
  limits.awaitReadMs * 2 <= limits.requestTimeoutMs,
  "who awaits tasks is answered in time, also when the journal is slow",
);
assert(
  Number.isSafeInteger(limits.taskWeightMax * 1000 * limits.queuedTasksMax),
  "the weights of a whole queue are summed exactly",
);
assert(limits.queuedTasksPerProjectMax <= limits.queuedTasksMax, "a project's bound lies within the swarm's");
assert(
  limits.brokerStallBytes < limits.brokerPendingBytesMax,
  "a publisher is held back before a reader is cut off",
);
assert(limits.maxPayloadBytesDefault < limits.brokerStallBytes, "one message never stalls its publisher");
assert(limits.brokerAnswerMs < limits.brokerStartMs, "one unanswered question does not use up a start");
assert(
  limits.execKillGraceMs <= limits.leaseTtlMs * limits.leaseAbortShare,
  "a command whose lease runs out is dead before it has run out",
);
assert(
  limits.agentLogMs < limits.logAskTimeoutMs,
  "whoever asks for logs hears from the leader that the agent does not answer",
);
assert(
  limits.execKillGraceMs < limits.agentStopMs,
  "a stopped agent's commands are dead before it speaks for them",
);
assert(
  limits.leaderTimeoutMsMax / limits.leaderBeatsPerTimeout < limits.leaderHeardMs,
  "a leader that announces itself is heard in time",
);
assert(limits.leaderTimeoutMs * 2 < limits.verbAskTimeoutMs, "a verb outlasts a change of leaders");
