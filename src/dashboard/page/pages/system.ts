// The system below the swarm: broker, journal, coordinators, the dashboard itself, and every setting with the origin.
// State charts show the number of tasks, agents and slots in each state.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import type { ProcessView, System } from "../../wire.ts";
import { bytes, count, counted, dateTime, duration, whole, window } from "../format.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { StateChart } from "../ui/state-chart.ts";
import { empty, head, loading, refusedView, section } from "../ui/states.ts";
import { Table } from "../ui/table.ts";
import { badge, bar } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";

export function SystemPage(): View {
  const { data, refused } = useLive("system");
  if (refused.value !== undefined) return refusedView("System", refused.value.message);
  const system = data.value;
  if (system === undefined)
    return html`${head({ title: "System", note: "…" })}<div class="card">${loading("Loading the system")}</div>`;
  return html`
    ${head({ title: "System", note: `Waggle ${system.dashboard.version}; journal ${system.journal.durability}` })}
    <div class="columns">${broker(system)}${coordinators(system)}${journal(system)}${dashboard(system)}</div>
    ${counters(system)}
    ${section(
      { title: "State charts", note: "as the code runs them; the figures say how many are in a state now" },
      html`<div class="statecharts">
        ${system.charts.map((chart) => html`<div class="card pad statechart" key=${chart.id}><h3>${chart.title}</h3>${h(StateChart, { chart })}</div>`)}
      </div>`,
    )}
    ${section({ title: "Settings", note: "with the origin of each" }, h(Settings, { settings: system.settings }))}
  `;
}

function facts(title: string, side: View, rows: readonly Fact[]): View {
  return html`<section class="card pad">
    <div class="row" style=${{ marginBottom: "12px" }}><h2>${title}</h2>${side}</div>
    <dl class="facts">
      ${rows.flatMap(([name, value]) => (value === undefined ? [] : [html`<dt key=${name}>${name}</dt><dd>${value}</dd>`]))}
    </dl>
  </section>`;
}

function broker({ broker: { url, name, version, connection, answerMs } }: System): View {
  return facts("Broker", badge(connection, connection === "connected" ? "good" : "bad"), [
    ["Address", url],
    ["Server", name],
    ["Version", version],
    ["Answer time", answerMs === undefined ? undefined : duration(answerMs)],
  ]);
}

function coordinators({ coordinators: of }: System): View {
  const { leader, term, standbys } = of;
  return facts(
    "Coordinators",
    standbys.length === 0 ? badge("no standby", "warn") : badge(counted(standbys.length, "standby"), "good"),
    [
      ["Leader", leader === "" ? html`<span class="bad-text">none</span>` : leader],
      ["Term", whole(term)],
      [
        "Standbys",
        standbys.length === 0
          ? html`none; ${h(Command, { text: "waggle up" })} starts one`
          : standbys.join(", "),
      ],
      [
        "Append p50, p99",
        of.appendP50Ms === undefined
          ? undefined
          : `${duration(of.appendP50Ms)}, ${duration(of.appendP99Ms ?? 0)}`,
      ],
      [
        "Turn p50, p99",
        of.decisionP50Ms === undefined
          ? undefined
          : `${duration(of.decisionP50Ms)}, ${duration(of.decisionP99Ms ?? 0)}`,
      ],
      ...(of.process === undefined ? [] : processFacts(of.process)),
    ],
  );
}

function journal({ journal: of }: System): View {
  const {
    durability,
    sentence,
    bytes: size,
    bytesMax,
    base,
    baseFailure,
    foreignRecords,
    firstIdx,
    lastIdx,
    id,
    verified,
  } = of;
  const state =
    verified?.fault !== undefined
      ? badge("changed", "bad")
      : baseFailure !== undefined
        ? badge("not compacted", "warn")
        : badge(durability, "good");
  return facts("Journal", state, [
    ["Durability", sentence],
    [
      "Size",
      bytesMax === undefined
        ? bytes(size)
        : html`${bar([{ share: size / bytesMax }], "journal size")} ${bytes(size)} of ${bytes(bytesMax)}`,
    ],
    ["Batches", `${whole(firstIdx)} to ${whole(lastIdx)}`],
    ["Verified", verified === undefined ? undefined : `up to batch ${whole(verified.idx)}`],
    [
      "Changed",
      verified?.fault === undefined ? undefined : html`<span class="bad-text">${verified.fault}</span>`,
    ],
    [
      "Base",
      base === undefined
        ? "none yet"
        : `batch ${whole(base.idx)}, ${bytes(base.bytes)}, ${dateTime(base.at)}`,
    ],
    ["Trouble", baseFailure === undefined ? undefined : html`<span class="warn-text">${baseFailure}</span>`],
    [
      "Foreign records",
      foreignRecords === undefined || foreignRecords === 0 ? undefined : whole(foreignRecords),
    ],
    ["Id", html`<span class="mono">${id}</span>`],
    ["Check it", h(Command, { text: "waggle verify" })],
  ]);
}

function dashboard({ dashboard: of }: System): View {
  return facts("This dashboard", badge("live", "good"), [
    ["Version", `${of.version}, Node ${of.node}`],
    ["Since", dateTime(of.startedAt)],
    ["Live views", whole(of.liveViews)],
    ["Events", `${whole(of.eventsPerSecond)} per second`],
    ...processFacts(of.process),
  ]);
}

type Fact = readonly [name: string, value: View | undefined];

function processFacts(of: ProcessView): readonly Fact[] {
  const { windowMs, loopLagP99Ms, loopLagMaxMs, rssBytes, heapUsedBytes, heapTotalBytes } = of;
  const within = `Of the last ${duration(windowMs)} to ${duration(2 * windowMs)}`;
  return [
    [
      "Loop lag p99, max",
      html`<span title=${within}>${duration(loopLagP99Ms)}, ${duration(loopLagMaxMs)}</span>`,
    ],
    ["Memory", `${bytes(rssBytes)}; heap ${bytes(heapUsedBytes)} of ${bytes(heapTotalBytes)}`],
  ];
}

function counters({ counters: all }: System): View {
  const rows = Object.entries(all).filter(([, value]) => value > 0);
  if (rows.length === 0) return null;
  return section(
    { title: "Counters", note: "since the leader's term began" },
    html`<div class="card pad">
      <dl class="figures">${rows.map(([name, value]) => html`<div key=${name}><dt>${spoken(name)}</dt><dd title=${whole(value)}>${count(value)}</dd></div>`)}</dl>
    </div>`,
  );
}

/** `staleResults` → `stale results`. */
function spoken(name: string): string {
  return name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("-", " ")
    .toLowerCase();
}

/** `86400000 ms (1d)`: the value as it is set, and for people. */
function valueText(setting: string, value: string): string {
  return setting.endsWith("Ms") && /^\d+$/.test(value) ? `${value} ms (${window(Number(value))})` : value;
}

function Settings({ settings }: Pick<System, "settings">): View {
  const text = useSignal("");
  const found = settings.filter(({ area, name = "", setting }) =>
    `${area} ${name} ${setting}`.toLowerCase().includes(text.value.toLowerCase()),
  );
  return html`
    <div class="filters">
      <input
        class="search"
        type="search"
        placeholder="Part of a setting's name"
        aria-label="Search settings"
        value=${text.value}
        onInput=${(event: InputEvent) => (text.value = (event.target as HTMLInputElement).value)}
      />
    </div>
    ${
      found.length === 0
        ? html`<div class="card">${empty({ title: "No setting matches" })}</div>`
        : h(Table<System["settings"][number]>, {
            ...{
              label: "Settings",
              rows: found,
              id: ({ area, name = "", setting }: System["settings"][number]) => `${area} ${name} ${setting}`,
            },
            columns: [
              {
                title: "Setting",
                cell: ({
                  area,
                  name,
                  setting,
                }) => html`<div class="stack"><span class="strong">${setting}</span>
                  <span class="muted small break">${area}${name === undefined ? "" : ` ${name}`}</span></div>`,
              },
              {
                title: "Value",
                cell: ({ setting, value }) => html`<span class="break">${valueText(setting, value)}</span>`,
              },
              {
                title: "Origin",
                rank: "mid",
                cell: ({ origin }) => html`<span class="muted">${origin}</span>`,
              },
              { title: "In a terminal", rank: "wide", cell: ({ command }) => h(Command, { text: command }) },
            ],
          })
    }
  `;
}
