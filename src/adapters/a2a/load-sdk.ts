// Loads the modules that need the A2A SDK, an optional package: only `waggle serve a2a` and `waggle agent --a2a` do.

import { MissingPackageError } from "../../errors.ts";

/** @throws MissingPackageError */
export async function loadA2aServer(): Promise<typeof import("./serve.ts")> {
  return await loaded(() => import("./serve.ts"), "waggle serve a2a");
}

/** @throws MissingPackageError */
export async function loadA2aClient(): Promise<typeof import("./remote-agent.ts")> {
  return await loaded(() => import("./remote-agent.ts"), "--a2a");
}

async function loaded<Module>(load: () => Promise<Module>, field: string): Promise<Module> {
  try {
    return await load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new MissingPackageError(
      "A2A needs the package @a2a-js/sdk, which is not installed: run `npm install @a2a-js/sdk` beside waggledance " +
        "(with -g for a global installation)",
      { field, cause },
    );
  }
}
