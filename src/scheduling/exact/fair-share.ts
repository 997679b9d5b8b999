// The arithmetic of fair shares (budget-scheduler specification, section 3): target ratios, deficits, exhaustion.
// The document calls it BudgetManager, and so does this package.

import { checkAmount } from "../../state/argument.ts";
import { type CountByProject, checkCounts, countOf } from "./budget-snapshot.ts";

/** Holds nothing but the global budget; all methods are pure functions of their arguments. */
export class BudgetManager {
  readonly globalBudget: number | null;

  /**
   * @param globalBudget tokens of all projects together; null is no limit
   * @throws InvalidValueError for a budget that is negative or no number
   */
  constructor(globalBudget: number | null = null) {
    if (globalBudget !== null) checkAmount(globalBudget, "globalBudget");
    this.globalBudget = globalBudget;
  }

  /**
   * Weight over the sum of weights, for each project: in [0, 1], summing to 1 (section 3.2).
   *
   * @returns {} when the weights sum to 0
   * @throws InvalidValueError for a weight that is negative or no number
   */
  calculateTargetRatios(weights: CountByProject): Record<string, number> {
    checkCounts(weights, "weights");
    const total = sumOf(weights);
    if (total === 0) return {};
    return Object.fromEntries(Object.entries(weights).map(([project, weight]) => [project, weight / total]));
  }

  /**
   * Target less actual share, for each project that has a weight (section 3.3). Positive means behind: the inverse of
   * the scheduler's key, which is negative for a project that is behind.
   *
   * @returns the targets themselves when nothing is used; {} when the weights sum to 0
   * @throws InvalidValueError for a weight or a use that is negative or no number
   */
  calculateDeficits(weights: CountByProject, usage: CountByProject): Record<string, number> {
    checkCounts(usage, "usage");
    const targets = this.calculateTargetRatios(weights);
    const totalUsage = sumOf(usage);
    if (totalUsage === 0) return targets;
    return Object.fromEntries(
      Object.entries(targets).map(([project, target]) => [
        project,
        target - countOf(usage, project) / totalUsage,
      ]),
    );
  }

  /** Section 3.4. @throws InvalidValueError for a use that is negative or no number */
  isGlobalBudgetExhausted(totalUsed: number): boolean {
    checkAmount(totalUsed, "totalUsed");
    return this.globalBudget !== null && totalUsed >= this.globalBudget;
  }

  /**
   * Section 3.5.
   *
   * @param budgetLimit null is no limit
   * @throws InvalidValueError for a use or a limit that is negative or no number
   */
  isProjectBudgetExhausted(projectUsed: number, budgetLimit: number | null): boolean {
    checkAmount(projectUsed, "projectUsed");
    if (budgetLimit !== null) checkAmount(budgetLimit, "budgetLimit");
    return budgetLimit !== null && projectUsed >= budgetLimit;
  }
}

function sumOf(counts: CountByProject): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
