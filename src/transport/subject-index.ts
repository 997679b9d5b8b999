// Finds the receivers of a subject: a trie over the tokens of the patterns, with cached answers. Shared by the
// in-process hub and the development broker. Knows neither sockets nor handlers.
//
// Reply subjects are new for every request. So answers are cached by all tokens but the last (the inbox), not
// by the whole subject: the unknown last tokens of a prefix all have the same receivers.

import { limits } from "../limits.ts";

/** Members take turns; each message goes to one member. */
export interface QueueGroup<Subscriber> {
  readonly name: string;
  readonly members: readonly Subscriber[];
  /** Shared by all cached answers with the group, so that the order of turns continues when the index changes. */
  readonly turn: { next: number };
}

/** Valid until the index changes; must not be kept or modified. */
export interface Receivers<Subscriber> {
  readonly each: readonly Subscriber[];
  readonly groups: readonly QueueGroup<Subscriber>[];
}

export interface Interest<Subscriber> {
  /** With `*` for one token and `>` for the rest; valid by `isValidPattern`. */
  readonly pattern: string;
  readonly queue: string | undefined;
  readonly subscriber: Subscriber;
}

/** True if `pattern` is a valid subscription: no empty token, no white space, `>` only at the end. */
export function isValidPattern(pattern: string): boolean {
  return !pattern.split(".").some((token, at, all) => {
    return token === "" || /\s/.test(token) || (token === ">" && at !== all.length - 1);
  });
}

export class SubjectIndex<Subscriber> {
  readonly #root = new Branch<Subscriber>();
  readonly #byPrefix = new Map<string, PrefixReceivers<Subscriber>>();
  #remembered = 0;

  add(interest: Interest<Subscriber>): void {
    let branch = this.#root;
    for (const token of interest.pattern.split(".")) branch = branch.grow(token);
    branch.add(interest);
    this.#forget();
  }

  /** Removes an interest given to `add`, identified by its subscriber. Unknown interests are ignored. */
  remove(interest: Interest<Subscriber>): void {
    removeAlong(this.#root, interest.pattern.split("."), interest);
    this.#forget();
  }

  /** @param subject literal; a subject with an empty token has no receivers */
  match(subject: string): Receivers<Subscriber> {
    const dot = subject.lastIndexOf(".");
    if (dot === 0) return nobody;
    return this.matchParts(dot < 0 ? "" : subject.slice(0, dot), subject.slice(dot + 1));
  }

  /** As `match`, for a subject in two parts: everything before the last dot (may be empty), and the last token. */
  matchParts(prefix: string, last: string): Receivers<Subscriber> {
    if (last === "") return nobody;
    const known = this.#byPrefix.get(prefix) ?? this.#rememberPrefix(prefix);
    if (known === undefined) return nobody;
    return known.named.get(last) ?? this.#matchLast(known, last);
  }

  #rememberPrefix(prefix: string): PrefixReceivers<Subscriber> | undefined {
    const tokens = prefix === "" ? [] : prefix.split(".");
    if (tokens.includes("")) return undefined;
    const known = receiversUnder(this.#root, tokens);
    if (prefix.length > limits.subjectCachedCharactersMax) return known;
    this.#makeRoom();
    this.#byPrefix.set(prefix, known);
    return known;
  }

  #matchLast(known: PrefixReceivers<Subscriber>, last: string): Receivers<Subscriber> {
    if (!known.parents.some((parent) => parent.named.has(last))) return known.unnamed;
    const ends = known.parents.flatMap((parent) => parent.named.get(last) ?? []);
    const receivers = gather([...known.ends, ...ends]);
    this.#makeRoom();
    known.named.set(last, receivers);
    return receivers;
  }

  #makeRoom(): void {
    if (this.#remembered >= limits.subjectCacheMax) this.#forget();
    this.#remembered += 1;
  }

  #forget(): void {
    if (this.#remembered === 0) return;
    this.#byPrefix.clear();
    this.#remembered = 0;
  }
}

/** Cached receivers of the subjects that share all tokens but the last. */
interface PrefixReceivers<Subscriber> {
  /** Branches whose named children may match the last token. */
  readonly parents: readonly Branch<Subscriber>[];
  /** Branches that end in a wildcard and match any last token. */
  readonly ends: readonly Branch<Subscriber>[];
  /** By last token, for tokens that a pattern names; filled on demand. */
  readonly named: Map<string, Receivers<Subscriber>>;
  /** For all other last tokens. */
  readonly unnamed: Receivers<Subscriber>;
}

class Branch<Subscriber> {
  readonly named = new Map<string, Branch<Subscriber>>();
  any: Branch<Subscriber> | undefined;
  rest: Branch<Subscriber> | undefined;
  readonly each: Subscriber[] = [];
  readonly groups = new Map<string, { name: string; members: Subscriber[]; turn: { next: number } }>();

  child(token: string): Branch<Subscriber> | undefined {
    if (token === "*") return this.any;
    if (token === ">") return this.rest;
    return this.named.get(token);
  }

  /** The children that match one token of a literal subject. */
  matching(token: string): Branch<Subscriber>[] {
    return [this.named.get(token), this.any].filter((child) => child !== undefined);
  }

  grow(token: string): Branch<Subscriber> {
    const known = this.child(token);
    if (known !== undefined) return known;
    const grown = new Branch<Subscriber>();
    if (token === "*") this.any = grown;
    else if (token === ">") this.rest = grown;
    else this.named.set(token, grown);
    return grown;
  }

  prune(token: string): void {
    if (token === "*") this.any = undefined;
    else if (token === ">") this.rest = undefined;
    else this.named.delete(token);
  }

  add({ queue, subscriber }: Interest<Subscriber>): void {
    if (queue === undefined) {
      this.each.push(subscriber);
      return;
    }
    const group = this.groups.get(queue);
    if (group === undefined)
      this.groups.set(queue, { name: queue, members: [subscriber], turn: { next: 0 } });
    else group.members.push(subscriber);
  }

  remove({ queue, subscriber }: Interest<Subscriber>): void {
    const among = queue === undefined ? this.each : (this.groups.get(queue)?.members ?? []);
    const at = among.indexOf(subscriber);
    if (at >= 0) among.splice(at, 1);
    if (queue !== undefined && among.length === 0) this.groups.delete(queue);
  }

  isBare(): boolean {
    const childless = this.named.size === 0 && this.any === undefined && this.rest === undefined;
    return childless && this.each.length === 0 && this.groups.size === 0;
  }
}

const nobody: Receivers<never> = { each: [], groups: [] };

function removeAlong<S>(branch: Branch<S>, tokens: readonly string[], interest: Interest<S>): void {
  const [token, ...others] = tokens;
  if (token === undefined) {
    branch.remove(interest);
    return;
  }
  const child = branch.child(token);
  if (child === undefined) return;
  removeAlong(child, others, interest);
  if (child.isBare()) branch.prune(token);
}

function receiversUnder<S>(root: Branch<S>, tokens: readonly string[]): PrefixReceivers<S> {
  const ends: Branch<S>[] = [];
  let parents = [root];
  for (const token of tokens) {
    for (const { rest } of parents) if (rest !== undefined) ends.push(rest);
    parents = parents.flatMap((parent) => parent.matching(token));
  }
  for (const { any, rest } of parents) {
    if (any !== undefined) ends.push(any);
    if (rest !== undefined) ends.push(rest);
  }
  return { parents, ends, named: new Map(), unnamed: gather(ends) };
}

/** Groups with the same name are one group, whatever their members' patterns. */
function gather<S>(ends: readonly Branch<S>[]): Receivers<S> {
  const groups = new Map<string, QueueGroup<S>>();
  for (const group of ends.flatMap((end) => [...end.groups.values()])) {
    const known = groups.get(group.name);
    const members = known === undefined ? group.members : [...known.members, ...group.members];
    groups.set(group.name, { name: group.name, members: [...members], turn: known?.turn ?? group.turn });
  }
  return { each: ends.flatMap((end) => end.each), groups: [...groups.values()] };
}
