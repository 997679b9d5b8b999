// What docs/results.md says that no figure says by itself, and which rules its pictures show. Written by hand; what
// is claimed here must be read off the tables, so keep it to what they cannot show.

/** By scenario, and `losses` and `loco` for their sections. */
export const notes: Readonly<Record<string, string>> = {
  losses: "Every figure in which some rule is better than ours by more than both intervals together.",
  loco: "The exact rule in this simulator beside what is published for it, from another source of chance.",
};

/** Rules in the picture of a scenario; default: all. */
export const pictured: Readonly<Record<string, readonly string[]>> = {
  "loco-burst": ["waggle", "loco", "fifo"],
  "loco-overload": ["waggle", "loco", "fifo"],
  "loco-sustainable": ["waggle", "loco", "fifo"],
  "loco-spike": ["waggle", "loco", "fifo"],
  "loco-mdash": ["waggle", "loco", "fifo"],
  newcomer: ["waggle", "window-usage", "budget"],
  "mixed-kinds": ["waggle", "standing-clock", "fifo"],
  "lucio-1": ["waggle", "lucio", "fifo", "two-queues"],
  "lucio-2": ["waggle", "lucio", "fifo", "two-queues"],
};
