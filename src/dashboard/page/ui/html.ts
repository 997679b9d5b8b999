// The template tag of all views. Every value becomes text or an attribute's value, never markup.

import htm from "htm";
import { type ComponentChildren, h } from "preact";

export type View = ComponentChildren;

export const html: (strings: TemplateStringsArray, ...values: unknown[]) => View = htm.bind(h) as never;
