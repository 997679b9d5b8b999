// Handles flags of the repository's scripts: `--help` prints the usage, and an unknown flag gives usage and exit code 2
// instead of a stack.

interface Flags {
  readonly values: { readonly help?: boolean };
}

/** @param read calls `parseArgs`; `--help` and errors end the process */
export function readFlags<T extends Flags>(usage: string, read: () => T): T {
  try {
    const flags = read();
    if (flags.values.help !== true) return flags;
    console.log(usage);
    process.exit(0);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

function isRefusal(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS_");
}
