// Budgets and rates: spent, reserved and remaining tokens, the binding limit, and the reset times.

import { h } from "preact";
import type { Budgets, BudgetView, RateView } from "../../wire.ts";
import { asSentence, count, counted, dateTime, percent, whole, window } from "../format.ts";
import { href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { empty, head, loading, refusedView, section } from "../ui/states.ts";
import { badge, bar, plainBadge } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";

export function BudgetsPage(): View {
  const { data, refused } = useLive("budgets");
  if (refused.value !== undefined) return refusedView("Budgets", refused.value.message);
  const budgets = data.value;
  return html`
    ${head({ title: "Budgets", note: "Tokens of projects in a rolling window, which return when the window has passed; rates of agent types" })}
    ${budgets === undefined ? html`<div class="card">${loading("Loading budgets")}</div>` : lists(budgets)}
  `;
}

function lists({ swarm, projects, rates }: Budgets): View {
  const own = Object.entries(projects).sort(([one], [other]) => one.localeCompare(other));
  const types = Object.values(rates);
  if (swarm === undefined && own.length === 0 && types.length === 0)
    return html`<div class="card">
      ${empty({
        title: "No budget limits the swarm",
        text: "With a budget, tasks wait, are refused, or run as a cheaper kind once its tokens are used up.",
        command: "waggle project set acme --budget 1000000 --budget-window 24h",
      })}
    </div>`;
  return html`
    ${
      (swarm !== undefined || own.length > 0) &&
      html`<div class="columns">
      ${swarm !== undefined && budgetView("The swarm", swarm, undefined)}
      ${own.map(([project, budget]) => budgetView(`Project ${project}`, budget, project))}
    </div>`
    }
    ${types.length > 0 && section({ title: "Rates", note: "tokens of all agents of a type" }, html`<div class="columns">${types.map(rateView)}</div>`)}
  `;
}

/** `next tokens return at 14:05:10, all by 15:00:00`. */
function returnText({ freesAt, emptyAt = freesAt }: Pick<BudgetView, "freesAt" | "emptyAt">): string {
  if (freesAt === undefined || emptyAt === undefined) return "nothing is spent in the window";
  if (freesAt === emptyAt) return `all tokens return at ${dateTime(freesAt)}`;
  return `next tokens return at ${dateTime(freesAt)}, all by ${dateTime(emptyAt)}`;
}

const modeTexts: Readonly<Record<BudgetView["mode"], string>> = {
  wait: "tasks wait",
  reject: "new tasks are refused",
  alert: "tasks run, and an event is journaled",
  downgrade: "tasks run as a cheaper kind",
};

function bindingText({ needed, opensAt }: BudgetView, left: number): string {
  const lacks =
    needed === undefined
      ? "Tasks wait"
      : `The oldest waiting task needs ${whole(needed)} tokens, and ${whole(left)} are left`;
  const until =
    opensAt === undefined
      ? "Tokens return when open attempts end, or as spent tokens leave the window"
      : `Enough tokens leave the window by ${dateTime(opensAt)}`;
  return `${lacks}. ${until}.`;
}

function budgetView(title: string, budget: BudgetView, project: string | undefined): View {
  const { tokens, spent, reserved, windowMs, mode, isUsedUp, isBinding, queued, command } = budget;
  const modeText = `when used up: ${modeTexts[mode]}`;
  const left = Math.max(0, tokens - spent - reserved);
  const state = isBinding ? "holds tasks up" : isUsedUp ? "used up" : "open";
  return html`<section class="card pad" key=${title}>
    <div class="row"><h2>${title}</h2>${badge(state, isBinding ? "bad" : isUsedUp ? "warn" : "good")}<span class="muted small">${modeText}</span></div>
    <div style=${{ margin: "14px 0 8px" }}>
      ${bar(
        [
          { share: spent / tokens, tone: isBinding || isUsedUp ? "bad" : "accent" },
          { share: reserved / tokens, tone: "soft" },
        ],
        `${percent(spent / tokens)} spent, ${percent(reserved / tokens)} reserved`,
      )}
    </div>
    <dl class="figures">
      <div><dt>Spent</dt><dd title=${whole(spent)}>${count(spent)}</dd></div>
      <div><dt>Reserved</dt><dd title=${whole(reserved)}>${count(reserved)}</dd></div>
      <div><dt>Left</dt><dd title=${whole(left)}>${count(left)}</dd></div>
      <div><dt>Limit</dt><dd title=${whole(tokens)}>${count(tokens)} in ${window(windowMs)}</dd></div>
    </dl>
    ${isBinding && html`<p class="small" style=${{ marginTop: "10px" }}>${bindingText(budget, left)}</p>`}
    <p class="muted small" style=${{ marginTop: "10px" }}>${asSentence(returnText(budget))}</p>
    <div class="row" style=${{ marginTop: "12px" }}>
      <a class="small" href=${href(["tasks"], { state: "queued", project })}>${counted(queued, "queued task")}</a>
      <span class="grow"></span>${h(Command, { text: command })}
    </div>
  </section>`;
}

function rateView(rate: RateView): View {
  const { type, window: per, isSliding, tokensMax, used, reserved, opensAt, command } = rate;
  return html`<section class="card pad" key=${`${type} ${per}`}>
    <div class="row">
      <h2>${type}</h2>
      ${opensAt === undefined ? badge("open", "good") : badge(`closed until ${dateTime(opensAt)}`, "warn")}
      ${plainBadge(isSliding ? "sliding window" : "fixed window")}
    </div>
    <div class="bar-row" style=${{ margin: "14px 0 10px" }}>
      ${bar(
        [
          { share: used / tokensMax, tone: opensAt === undefined ? "accent" : "warn" },
          { share: reserved / tokensMax, tone: "soft" },
        ],
        `${percent(used / tokensMax)} used`,
      )}
      <span class="nowrap">${count(used)} of ${count(tokensMax)} ${per.replace("_", " ")}</span>
    </div>
    <div class="row"><span class="muted small">${whole(reserved)} reserved for open attempts; ${returnText(rate)}</span><span class="grow"></span>${h(Command, { text: command })}</div>
  </section>`;
}
