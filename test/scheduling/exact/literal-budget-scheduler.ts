// The budget specification's section 2, sentence by sentence and as slowly as it says: projects sorted again for each
// agent, the first unassigned task searched from the beginning. The reference for the scheduler beyond the vectors.

import type {
  AssignAction,
  BudgetSnapshot,
  SnapshotTask,
} from "../../../src/scheduling/exact/budget-snapshot.ts";

export function literalSchedule(state: BudgetSnapshot): AssignAction[] {
  if (state.globalBudget !== null && state.globalTokensUsed >= state.globalBudget) return [];
  const idle = state.agents.filter((agent) => agent.state === "idle");
  if (idle.length === 0) return [];
  const readyByProject = new Map<string, SnapshotTask[]>();
  for (const task of state.tasks) {
    if (task.status !== "ready") continue;
    readyByProject.set(task.projectId, [...(readyByProject.get(task.projectId) ?? []), task]);
  }
  for (const ready of readyByProject.values()) {
    ready.sort((a, b) => a.priority - b.priority || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  }
  const eligible = state.projects.filter((p) => p.status === "active" && readyByProject.has(p.id));
  if (eligible.length === 0) return [];

  const totalWeight = eligible.reduce((total, project) => total + project.creditWeight, 0);
  let totalTokens = Object.values(state.projectTokenUsage).reduce((total, tokens) => total + tokens, 0);
  if (totalTokens === 0) totalTokens = 1;

  const actions: AssignAction[] = [];
  const assignedAgents = new Set<string>();
  const assignedTasks = new Set<string>();
  const roundCounts = new Map(Object.entries(state.projectActiveAgentCounts));
  const usageOf = (id: string) => state.projectTokenUsage[id] ?? 0;
  for (const agent of idle) {
    if (assignedAgents.has(agent.id)) continue;
    const sorted = eligible.toSorted((a, b) => {
      const guarantee = (id: string) => ((state.tasksCompletedInWindow[id] ?? 0) === 0 ? 0 : 1);
      const deficit = (id: string, weight: number) => usageOf(id) / totalTokens - weight / totalWeight;
      return (
        guarantee(a.id) - guarantee(b.id) || deficit(a.id, a.creditWeight) - deficit(b.id, b.creditWeight)
      );
    });
    for (const project of sorted) {
      if (project.budgetLimit !== null && usageOf(project.id) >= project.budgetLimit) continue;
      if ((roundCounts.get(project.id) ?? 0) >= project.maxConcurrentAgents) continue;
      const task = readyByProject.get(project.id)?.find(({ id }) => !assignedTasks.has(id));
      if (task === undefined) continue;
      actions.push({ agentId: agent.id, taskId: task.id, projectId: project.id });
      assignedAgents.add(agent.id);
      assignedTasks.add(task.id);
      roundCounts.set(project.id, (roundCounts.get(project.id) ?? 0) + 1);
      break;
    }
  }
  return actions;
}
