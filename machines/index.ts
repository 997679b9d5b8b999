// The public names of the charts (`waggledance/machines`): definitions to draw, test or run, and
// functions that read a snapshot. Names of states are not part of the interface and may change.

export {
  type AgentSignal,
  type AgentSnapshot,
  type AgentStanding,
  type AgentStatus,
  agentMachine,
  agentStanding,
  loadSignals,
} from "./agent.ts";
export { type CoordinatorSignal, type CoordinatorSnapshot, coordinatorMachine } from "./coordinator.ts";
export { type SlotSignal, type SlotSnapshot, slotMachine, slotState } from "./slot.ts";
export { type TaskSignal, type TaskSnapshot, taskMachine, taskState } from "./task.ts";
