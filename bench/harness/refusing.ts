// Flags of a benchmark are read by a function that tests call: a wrong flag is a sentence, not an exit.

export type Read<Flags> = Flags | "help" | { readonly refused: string };

/** @param read calls `parseArgs` of Node, whose errors become the sentence */
export function refusing<Flags>(read: () => Read<Flags>): Read<Flags> {
  try {
    return read();
  } catch (error) {
    if (error instanceof TypeError && "code" in error)
      return { refused: error.message.split(". ")[0] ?? error.message };
    throw error;
  }
}

/** Prints help, or the wrong flag with the usage.
 *  @returns the flags, or the exit code */
export function flagsOrExitCode<Flags extends object>(read: Read<Flags>, usage: string): Flags | 0 | 2 {
  if (read === "help") {
    console.log(usage);
    return 0;
  }
  if ("refused" in read) {
    console.error(`${read.refused}\n\n${usage}`);
    return 2;
  }
  return read;
}
