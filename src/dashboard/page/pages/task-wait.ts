// Why a task waits: first the answer, then the place in the queue, then the standing of every agent.

import { h } from "preact";
import type { PlaceView, WaitView } from "../../wire.ts";
import { counted, duration } from "../format.ts";
import { href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { section } from "../ui/states.ts";
import { badge, type Tone } from "../ui/tone.ts";

export function waitSection(wait: WaitView, command: string): View {
  const { sentence, obstacles, position, agents, ageMs } = wait;
  return section(
    { title: "Why it waits", note: `for ${duration(ageMs)}`, side: h(Command, { text: command }) },
    html`<div class="card" data-part="wait">
      <div class="verdict">
        <span class="mark tone-warn" aria-hidden="true">?</span>
        <p class="sentence">${sentence}.</p>
        ${
          obstacles.length > 1 &&
          html`<ul class="findings">
            ${obstacles.slice(1).map((each) => html`<li key=${each.reason}>${badge(each.reason.replaceAll("-", " "), "idle")}<span>${each.sentence}</span></li>`)}
          </ul>`
        }
        ${position !== undefined && positionView(position)}
      </div>
      ${agents.length > 0 && standings(agents)}
    </div>`,
  );
}

function positionView({ project, user, task, waiting, next }: NonNullable<WaitView["position"]>): View {
  const place = (name: string, { place: at, of, waited, starvationLimit }: PlaceView) => html`<li key=${name}>
    <span class="muted">${name}</span> <strong>${at} of ${of}</strong>
    ${starvationLimit !== undefined && starvationLimit > 0 && html`<span class="muted">waited ${Math.round(waited)} of ${Math.round(starvationLimit)} before it goes first</span>`}
  </li>`;
  return html`<ul class="findings">
    ${place("Its project's turn:", project)} ${place("Its user's turn:", user)} ${place("The task's turn:", task)}
    <li>
      <span class="muted">${counted(waiting, "task")} in its queue.</span>
      ${next !== undefined && html`<span class="muted">Next is</span> <a href=${href(["tasks", next.project, next.task])}>${next.task}</a>`}
    </li>
  </ul>`;
}

const tones: Readonly<Record<string, Tone>> = { feasible: "good", probe: "good", full: "accent" };

export function standings(agents: WaitView["agents"]): View {
  return html`<div class="scroll-x">
    <table aria-label="How every agent stands">
      <thead><tr><th>Agent</th><th>Standing</th><th class="number">Free</th><th class="number mid">Score</th></tr></thead>
      <tbody>
        ${agents.map(
          ({ agent, standing, free, capacity, score }) => html`<tr key=${agent}>
            <td><a class="break" href=${href(["agents", agent])}>${agent}</a></td>
            <td>${badge(standing.replaceAll("-", " "), tones[standing] ?? "idle")}</td>
            <td class="number">${free} of ${capacity}</td>
            <td class="number mid">${score === undefined ? "–" : score.toFixed(3)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
