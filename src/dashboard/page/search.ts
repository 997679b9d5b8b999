// The search by keyboard: pages, and tasks with the text in id, kind, user or agent.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useEffect } from "preact/hooks";
import type { TaskRow } from "../wire.ts";
import { TYPING_MS } from "./bounds.ts";
import { type Dashboard, useDashboard } from "./context.ts";
import { pages } from "./pages.ts";
import { href } from "./router.ts";
import { Dialog } from "./ui/dialog.ts";
import { html, type View } from "./ui/html.ts";

export function openSearch({ overlay }: Pick<Dashboard, "overlay">): void {
  overlay.value = (close) => h(Search, { close });
}

interface Found {
  readonly address: string;
  readonly text: string;
  readonly note: string;
}

function Search({ close }: { readonly close: () => void }): View {
  const { api, router } = useDashboard();
  const text = useSignal("");
  const tasks = useSignal<readonly TaskRow[]>([]);
  const at = useSignal(0);
  const { value: typed } = text;
  useEffect(() => {
    const abort = new AbortController();
    if (typed.trim() === "") {
      tasks.value = [];
      return;
    }
    const timer = setTimeout(() => {
      // A failed search finds no task; the pages stay.
      void api.tasks({ text: typed.trim(), limit: "8" }, abort.signal).then(
        ({ rows }) => {
          tasks.value = rows;
        },
        () => undefined,
      );
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [typed, api, tasks]);

  const found = foundFor(typed, tasks.value);
  const chosen = Math.min(at.value, Math.max(0, found.length - 1));
  const open = (result: Found | undefined) => {
    if (result === undefined) return;
    close();
    router.go(result.address);
  };
  const keys = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter") open(found[chosen]);
    if (step === 0) return;
    event.preventDefault();
    at.value = (chosen + step + found.length) % Math.max(1, found.length);
  };
  return h(Dialog, {
    ...{ title: "Search", kind: "palette" as const, close },
    children: html`
      <input
        type="text"
        autofocus
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-label="Search pages, tasks and agents"
        placeholder="A page, or part of a task's id, kind, user or agent"
        maxlength="128"
        value=${typed}
        onInput=${(event: InputEvent) => {
          text.value = (event.target as HTMLInputElement).value;
          at.value = 0;
        }}
        onKeyDown=${keys}
      />
      <ul id="found" role="listbox">
        ${found.map(
          (result, place) => html`<li key=${result.address} role="presentation">
            <a role="option" aria-selected=${String(place === chosen)} href=${result.address} onClick=${() => close()}>
              <span class="break">${result.text}</span><span>${result.note}</span>
            </a>
          </li>`,
        )}
      </ul>
    `,
  });
}

function foundFor(text: string, tasks: readonly TaskRow[]): readonly Found[] {
  const word = text.trim().toLowerCase();
  const known = pages
    .filter(({ title }) => title.toLowerCase().includes(word))
    .map(({ id, title, shortcut }) => ({
      address: href(id === "" ? [] : [id]),
      text: title,
      note: `g ${shortcut}`,
    }));
  if (word === "") return known;
  const rows = tasks.map(({ task, project, state, kind }) => ({
    address: href(["tasks", project, task]),
    text: task,
    note: `${state} ${kind}, ${project}`,
  }));
  return [
    ...rows,
    ...known,
    {
      address: href(["tasks"], { text: text.trim() }),
      text: `All tasks with “${text.trim()}”`,
      note: "Tasks",
    },
    {
      address: href(["agents"], { text: text.trim() }),
      text: `All agents with “${text.trim()}”`,
      note: "Agents",
    },
  ];
}
