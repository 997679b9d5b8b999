// The table of verbs: name, group, the line in help, and the module with the verb. The help of the whole program reads
// only this table. Not here: flags and actions (one file per verb), the command line as a whole (program.ts).

import type { Command } from "commander";
import type { Program } from "./verb.ts";

export interface VerbEntry {
  /** The line of the verb in the help of the whole program. */
  readonly summary: string;
  /** Loads the module of the verb. Loading all modules takes most of a second. */
  readonly load: () => Promise<BuildVerb>;
}

type BuildVerb = (program: Program) => Command;

/** By group and name, in the order of help. */
export const verbsByGroup: Readonly<Record<string, Readonly<Record<string, VerbEntry>>>> = {
  Run: {
    demo: {
      summary: "see a swarm at work on a folder",
      load: async () => (await import("./demo.ts")).demoCommand,
    },
    up: {
      summary: "start a coordinator, and a broker if none runs",
      load: async () => (await import("./up.ts")).upCommand,
    },
    agent: {
      summary: "join the swarm as an agent: run a command, call a URL, an MCP tool or an A2A agent",
      load: async () => (await import("./agent.ts")).agentCommand,
    },
    serve: {
      summary: "serve a kind of tasks over another protocol",
      load: async () => (await import("./serve.ts")).serveCommand,
    },
    bridge: {
      summary: "adopt the agents of another protocol",
      load: async () => (await import("./bridge.ts")).bridgeCommand,
    },
    mcp: {
      summary: "serve the swarm as tools to a model (MCP)",
      load: async () => (await import("./mcp.ts")).mcpCommand,
    },
    down: {
      summary: "stop the broker of this data folder",
      load: async () => (await import("./down.ts")).downCommand,
    },
  },
  Tasks: {
    submit: {
      summary: "submit tasks, and wait for them if asked to",
      load: async () => (await import("./submit.ts")).submitCommand,
    },
    wait: {
      summary: "wait for tasks and print their results",
      load: async () => (await import("./wait-tasks.ts")).waitCommand,
    },
    tasks: {
      summary: "list tasks",
      load: async () => (await import("./tasks.ts")).tasksCommand,
    },
    task: {
      summary: "show a task's history, with the reason for each assignment",
      load: async () => (await import("./task.ts")).taskCommand,
    },
    explain: {
      summary: "show why a task waits, or why it got its agent",
      load: async () => (await import("./explain.ts")).explainCommand,
    },
    retry: {
      summary: "run ended tasks again",
      load: async () => (await import("./retry.ts")).retryCommand,
    },
    cancel: {
      summary: "cancel tasks",
      load: async () => (await import("./cancel.ts")).cancelCommand,
    },
    revoke: {
      summary: "free a stuck task from its agent",
      load: async () => (await import("./revoke.ts")).revokeCommand,
    },
    reschedule: {
      summary: "change when waiting tasks may start",
      load: async () => (await import("./reschedule.ts")).rescheduleCommand,
    },
  },
  Settings: {
    project: {
      summary: "set a project's share, limits and budget",
      load: async () => (await import("./project.ts")).projectCommand,
    },
    kind: {
      summary: "set a kind's importance and its cheaper substitute",
      load: async () => (await import("./kind.ts")).kindCommand,
    },
    resource: {
      summary: "set the slots of a resource; show its holders and waiting requests",
      load: async () => (await import("./resource.ts")).resourceCommand,
    },
    rate: {
      summary: "limit the tokens of agents of one type",
      load: async () => (await import("./rate.ts")).rateCommand,
    },
    grant: {
      summary: "bound what a group of agents may do",
      load: async () => (await import("./grant.ts")).grantCommand,
    },
    policy: {
      summary: "choose the rules of the swarm, and its limits",
      load: async () => (await import("./policy.ts")).policyCommand,
    },
    config: {
      summary: "show the settings of this command line and their origin",
      load: async () => (await import("./config.ts")).configCommand,
    },
  },
  Look: {
    status: {
      summary: "show agents, tasks, queues, resources, users, leader and journal",
      load: async () => (await import("./status.ts")).statusCommand,
    },
    health: {
      summary: "a verdict on the swarm, and the next command",
      load: async () => (await import("./health.ts")).healthCommand,
    },
    dashboard: {
      summary: "show the swarm live in a browser",
      load: async () => (await import("./dashboard.ts")).dashboardCommand,
    },
    events: {
      summary: "print or follow the events of the journal",
      load: async () => (await import("./events.ts")).eventsCommand,
    },
    verify: {
      summary: "prove that the journal is unchanged",
      load: async () => (await import("./verify.ts")).verifyCommand,
    },
    export: {
      summary: "write the whole journal as lines of JSON",
      load: async () => (await import("./export.ts")).exportCommand,
    },
    replay: {
      summary: "check the decisions of a journal, or run its work under other rules",
      load: async () => (await import("./replay.ts")).replayCommand,
    },
    plan: {
      summary: "print what would be assigned on a snapshot",
      load: async () => (await import("./plan.ts")).planCommand,
    },
    simulate: {
      summary: "measure what scheduling rules do, in virtual time",
      load: async () => (await import("./simulate.ts")).simulateCommand,
    },
    torture: {
      summary: "run a simulated swarm through faults, and check its invariants",
      load: async () => (await import("./torture.ts")).tortureCommand,
    },
  },
  Operate: {
    doctor: {
      summary: "check connection, server, JetStream, journal, clock and durability",
      load: async () => (await import("./doctor.ts")).doctorCommand,
    },
    drain: {
      summary: "stop assigning tasks to an agent",
      load: async () => (await import("./drain.ts")).drainCommand,
    },
    undrain: {
      summary: "assign tasks to an agent again",
      load: async () => (await import("./drain.ts")).undrainCommand,
    },
    hold: {
      summary: "keep an agent, a type of agents or a resource from new work until a time",
      load: async () => (await import("./hold.ts")).holdCommand,
    },
    unhold: {
      summary: "end a hold",
      load: async () => (await import("./hold.ts")).unholdCommand,
    },
    pause: {
      summary: "stop assigning tasks of one project or of the swarm",
      load: async () => (await import("./pause.ts")).pauseCommand,
    },
    resume: {
      summary: "end a pause",
      load: async () => (await import("./pause.ts")).resumeCommand,
    },
    leader: {
      summary: "transfer the leadership to another coordinator",
      load: async () => (await import("./leader.ts")).leaderCommand,
    },
    auth: {
      summary: "make and revoke credentials for a NATS server",
      load: async () => (await import("./auth.ts")).authCommand,
    },
    journal: {
      summary: "recover a damaged journal",
      load: async () => (await import("./journal.ts")).journalCommand,
    },
    completion: {
      summary: "print a script that completes verbs, flags and files in a shell",
      load: async () => (await import("./completion.ts")).completionCommand,
    },
  },
};
