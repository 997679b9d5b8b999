// Counts for people: `12,345 tasks`. Whole numbers are grouped here, because the first call of `toLocaleString` takes
// 25 ms, which a short command would notice.

/** `12,345`. */
export function formatCount(count: number): string {
  return Number.isSafeInteger(count) ? String(count).replace(GROUP_END, ",") : count.toLocaleString("en-US");
}

/** `1 task`, `2 tasks`, `12,345 tasks`. */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Between two digits, where three, six, nine … digits follow. */
const GROUP_END = /\B(?=(?:\d{3})+$)/g;
