// Who is told, while listeners come and go.

import { describe, expect, it } from "vitest";
import { Listeners } from "../src/listeners.ts";

describe("listeners", () => {
  it("are told until they stop, each once", () => {
    const listeners = new Listeners<[number]>();
    const heard: number[] = [];
    const listener = (value: number) => heard.push(value);
    const stop = listeners.add(listener);
    listeners.add(listener);
    listeners.notify(1);
    stop();
    listeners.notify(2);
    expect(heard).toEqual([1]);
  });

  it("added or removed during a notification do not change the notified listeners", () => {
    const listeners = new Listeners();
    const heard: string[] = [];
    listeners.add(() => {
      stopSecond();
      listeners.add(() => heard.push("third"));
    });
    const stopSecond = listeners.add(() => heard.push("second"));
    listeners.notify();
    expect(heard).toEqual(["second"]);
  });
});
