// The only argument of every process of a benchmark: the server's address.

/** @returns the server's address, from `argv[2]` */
export function serverFromArguments(): { readonly urls: readonly string[] } {
  const url = process.argv[2];
  if (url === undefined) throw new Error("give the server's URL");
  return { urls: [url] };
}

/** Tells the parent that this process is ready. Ends the process when the parent ends. */
export function readyForParent(): void {
  process.on("disconnect", () => process.exit(0));
  process.send?.("ready");
}
