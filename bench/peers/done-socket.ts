// For systems without results: a worker reports ended tasks to the client over a Unix socket, one id per line. The
// socket costs next to nothing, which flatters such a system.

import { unlinkSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { batchPerTurn } from "./turn-batch.ts";

export async function listenForDone(path: string, onDone: (id: string) => void): Promise<void> {
  try {
    unlinkSync(path);
  } catch {
    // No earlier client.
  }
  await new Promise<void>((resolve) => {
    createServer((socket) => {
      let rest = "";
      socket.setEncoding("utf8");
      socket.on("error", () => undefined);
      socket.on("data", (text) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const id of lines) onDone(id);
      });
    }).listen(path, resolve);
  });
}

/** @returns reports the end of a task */
export function doneReporter(path: string): (id: string) => void {
  let socket: Socket;
  const open = () => {
    socket = connect(path);
    socket.on("error", () => setTimeout(open, 50));
  };
  open();
  return batchPerTurn((ids) => socket.write(`${ids.join("\n")}\n`));
}
