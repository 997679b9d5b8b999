// The client for Python against the production coordinator over a real connection. Every message that the client sends
// is checked against the schemas of the wire.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { type Coordinator, startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import * as schemas from "../../src/protocol/schemas.ts";
import * as slots from "../../src/protocol/slot-schemas.ts";
import { startTestBroker, type TestBroker } from "../support/development-broker.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { hasProgram } from "../support/programs.ts";
import { silentLogger } from "../support/swarm.ts";

const folder = fileURLToPath(new URL("../../clients/python", import.meta.url));

const schemaByVerb: Readonly<Record<string, z.ZodType>> = {
  join: schemas.joinRequestSchema,
  leave: schemas.leaveRequestSchema,
  heartbeat: schemas.heartbeatSchema,
  progress: schemas.progressSchema,
  chunk: schemas.chunksSchema,
  result: schemas.resultRequestSchema,
  acquire: slots.acquireRequestSchema,
  touch: slots.touchRequestSchema,
  release: slots.releaseRequestSchema,
  submit: schemas.submitRequestSchema,
  await: schemas.awaitRequestSchema,
};

let broker: TestBroker;
let coordinator: Coordinator;
let swarm: Swarm;
const verbs = new Set<string>();
const wrong: string[] = [];

describe.runIf(hasProgram("python3", "the client for Python"))("the client for Python", () => {
  beforeAll(async () => {
    broker = await startTestBroker();
    const { transport } = broker;
    transport.subscribe("waggle.v1.test.>", ({ subject, data }) => {
      const [, , , sender, , ...rest] = subject.split(".");
      const verb = rest.at(-1) ?? "";
      const schema = sender === "agent" || sender === "project" ? schemaByVerb[verb] : undefined;
      if (schema === undefined) return;
      verbs.add(verb);
      const read = schema.safeParse(JSON.parse(Buffer.from(data).toString()));
      if (!read.success) wrong.push(`${subject}: ${read.error.message}`);
    });
    coordinator = await startCoordinator({
      id: "c1",
      swarm: swarmId("test"),
      transport,
      journal: new MemoryJournal(new MemoryJournalStore()),
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
    });
    await coordinator.whenLeading();
    swarm = await connect({ swarm: "test", nats: broker.url });
    await swarm.setResource("gpu", { slots: 1 });
  });

  afterAll(async () => {
    await swarm?.close();
    await coordinator?.stop();
    await broker?.close();
  });

  it("submits, runs, streams, fails, and gives every result", async () => {
    const printed = await python(`
      import waggledance as w
      def handler(task):
          if task.payload == "bad": raise w.InvalidInput("no")
          if task.payload == "boom": raise RuntimeError("broken")
          if task.payload == "stream": return parts()
          task.report_tokens(7); task.progress(0.5, "half")
          return {"json": task.json()["n"] * 2, "bytes": b"\\xff", "none": None}[task.json()["give"]]
      def parts():
          yield "bees "
          yield "dance"
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["work"], handler, max_concurrent=4, id="py"):
              say(swarm.submit("work", {"n": 21, "give": "json"}).result(20))
              say(list(swarm.submit("work", {"n": 1, "give": "bytes"}).result(20)))
              say(swarm.submit("work", {"n": 1, "give": "none"}).result(20))
              task = swarm.submit("work", "stream", stream=True)
              say([tuple(chunk) for chunk in task.chunks()], task.result(20))
              for payload in ("bad", "boom"):
                  try: swarm.submit("work", payload, maxAttempts=1).result(20)
                  except w.WaggleError as error: say(error.code, error.outcome["error"], error.outcome["state"])
              say(swarm.task(task.id).result(20))
              many = [swarm.submit("work", {"n": n, "give": "json"}) for n in range(50)]
              say(sum(int(each.result(20)) for each in many))
    `);
    expect(printed).toEqual([
      ["42"],
      [[255]],
      [""],
      [
        [
          [1, 0, "bees "],
          [1, 1, "dance"],
        ],
        "bees dance",
      ],
      ["WAGGLE_TASK_FAILED", "no", "failed"],
      ["WAGGLE_TASK_FAILED", "broken", "dead-lettered"],
      ["bees dance"],
      [2450],
    ]);
  });

  it("takes servers, swarm, project and user from the environment, and leaves a server that hangs", async () => {
    const printed = await python(`
      import waggledance as w, os, socket
      hangs = socket.create_server(("127.0.0.1", 0))
      hanging = f"nats://127.0.0.1:{hangs.getsockname()[1]}"
      w.connection.SILENCE_SECONDS, w.connection.PING_SECONDS = 1.0, 0.2
      os.environ.update(NATS_URL=f"{hanging},{url}", WAGGLE_SWARM="test", WAGGLE_PROJECT="blue", WAGGLE_USER="bo")
      with w.connect() as swarm:
          task = swarm.submit("nobody", id="of-blue")
          say(task.project, swarm.query("task", {"task": "of-blue"}, "blue")["user"])
          say(swarm.nats.socket.getpeername()[1] == hangs.getsockname()[1])
    `);
    expect(printed).toEqual([["blue", "bo"], [false]]);
  });

  it("reports whatever a handler raises, and names a time between now and seven days", async () => {
    const printed = await python(`
      import waggledance as w, sys, time
      from waggledance.attempt import wait_of
      from waggledance.agent import told_again
      def raises(task):
          if task.attempt > 1: return "in the end"
          if task.payload == "exit": sys.exit(1)
          raise w.Infrastructure("429", retry_after=-0.02)
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["raises"], raises, id="raises", max_concurrent=2):
              started = time.monotonic()
              say(swarm.submit("raises", "exit").result(20), swarm.submit("raises", "past").result(20))
              say(time.monotonic() - started < 10)
      say(*(wait_of(seconds)["forMs"] for seconds in (-0.02, 1.5, 10 * 86400)))
      report = {"project": "p", "task": "t", "attempt": 1, "token": "x", "outcome": "infrastructure", "error": "429"}
      refused = lambda code: {"ok": False, "code": code, "message": "no"}
      say(told_again(report, {"ok": True}), told_again(report, refused("WAGGLE_GONE")))
      say(told_again({**report, "hold": {"forMs": -1}}, refused("WAGGLE_INVALID_MESSAGE")) == report)
      say(told_again(report, refused("WAGGLE_INVALID_MESSAGE"))["outcome"])
      say(told_again(report, refused("WAGGLE_BACKPRESSURE")) is report)
    `);
    expect(printed).toEqual([
      ["in the end", "in the end"],
      [true],
      [0, 1500, 604_800_000],
      [null, null],
      [true],
      ["failed"],
      [true],
    ]);
  });

  it("reports a result whose slots no leader takes back", async () => {
    const printed = await python(`
      import waggledance as w
      from waggledance.agent import Slot
      def unreachable(*_, **__): raise w.WaggleError("WAGGLE_NO_LEADER", "no leader answers")
      def keeps(task):
          task.acquire("gpu")
          Slot.release = unreachable
          return "done"
      with w.connect(url, swarm="test") as swarm:
          release = Slot.release
          with swarm.agent(["keeps"], keeps, id="keeps"):
              say(swarm.submit("keeps").result(20))
              Slot.release = release
    `);
    expect(printed).toEqual([["done"]]);
  });

  it("has no chunks of an attempt before the last", async () => {
    const printed = await python(`
      import waggledance as w
      def once(task):
          if task.attempt == 2: return "whole"
          task.emit("void")
          raise RuntimeError("not this time")
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["once"], once, id="once"):
              task = swarm.submit("once", stream=True)
              say([chunk.data for chunk in task.chunks()], task.result(20), [chunk.data for chunk in task.chunks()])
    `);
    expect(printed).toEqual([[["void"], "whole", []]]);
  });

  it("asks for labels, and carries an affinity and attributes", async () => {
    const printed = await python(`
      import waggledance as w
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["train"], lambda task: task.attributes["ticket"], id="py-gpu", labels={"gpu": "a100"}):
              asked = {"affinity": "session-42", "attributes": {"ticket": "OPS-17"}}
              say(swarm.submit("train", "x", needs={"gpu": ["a100", "h100"]}, **asked).result(20))
              waits = swarm.submit("train", "x", needs={"gpu": "h100"}, **asked)
              say(waits.warnings[0]["code"], waits.warnings[0]["nearMisses"])
              say(len(swarm.query("tasks", {"attributes": {"ticket": "OPS-17"}})["tasks"]))
          try: swarm.submit("train", "x", needs={"gpu": 7})
          except w.WaggleError as error: say(error.code, error.field)
    `);
    expect(printed).toEqual([
      ["OPS-17"],
      ["no-agent-has-labels", ["gpu=a100"]],
      [2],
      ["WAGGLE_INVALID_MESSAGE", "needs.gpu"],
    ]);
  });

  it("joins text and bytes that a generator yields", async () => {
    const printed = await python(`
      import waggledance as w
      parts = {"text": ["a", "b"], "mixed": ["a", b"\\xff"], "values": ["a", b"\\xff", 1]}
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["joins"], lambda task: (each for each in parts[task.payload]), id="joins"):
              for name in parts:
                  result = swarm.submit("joins", name).result(20)
                  say(result if isinstance(result, str) else list(result))
    `);
    expect(printed).toEqual([["ab"], [[0x61, 0xff]], ['["a", "/w==", 1]']]);
  });

  it("takes options in snake_case, and refuses an option that it does not know", async () => {
    const printed = await python(`
      import waggledance as w
      def refused(call, *of, **options):
          try: call(*of, **options)
          except w.WaggleError as error: say(error.code, error.field, error.message)
      with w.connect(url, swarm="test") as swarm:
          later = {"not_before": 4_000_000_000_000, "max_attempts": 2, "timeout_ms": 5_000, "stall_ms": 700}
          say(swarm.submit("snakes", id="snakes", **later).id)
          found = next(e for e in swarm.events() if e["type"] == "TaskSubmitted" and e["task"]["id"] == "snakes")["task"]
          say(*(found[name] for name in ("notBefore", "maxAttempts", "timeoutMs", "stallMs")))
          refused(swarm.submit, "x", need={"gpu": "a100"})
          refused(swarm.submit, "x", max_attempt=1)
          refused(swarm.submit, "x", max_attempts=1, maxAttempts=2)
          refused(swarm.submit, "x", zzz=1)
          refused(swarm.agent, ["x"], None, label={"gpu": "a100"})
          refused(swarm.acquire, "gpu", time_out=5)
          refused(swarm.acquire, "gpu", resource="gpu")
          with swarm.acquire("gpu", idle_timeout_ms=20_000):
              say("idleAt" in swarm.query("status")["resources"][0]["holders"][0])
              refused(swarm.acquire, "gpu", timeout_ms=5)
    `);
    const invalid = "WAGGLE_INVALID_MESSAGE";
    expect(printed).toEqual([
      ["snakes"],
      [4_000_000_000_000, 2, 5_000, 700],
      [invalid, "need", "submit has no option need; did you mean needs?"],
      [invalid, "max_attempt", "submit has no option max_attempt; did you mean max_attempts?"],
      [invalid, "maxAttempts", "submit has maxAttempts twice, in both spellings"],
      [invalid, "zzz", expect.stringMatching(/^submit has no option zzz; it has id, .*not_before.*timeout$/)],
      [invalid, "label", "agent has no option label; did you mean labels?"],
      [invalid, "time_out", "acquire has no option time_out; did you mean timeout?"],
      [invalid, "resource", expect.stringMatching(/^acquire has no option resource; it has timeout_ms/)],
      [true],
      ["WAGGLE_ACQUIRE_TIMED_OUT", null, expect.any(String)],
    ]);
  });

  it("runs handlers that are asynchronous, and cancels them at the abort of the attempt", async () => {
    const printed = await python(`
      import asyncio
      import waggledance as w
      ended = []
      async def handler(task):
          if task.payload == "bad": raise w.InvalidInput("no")
          if task.payload == "wait":
              try: await asyncio.sleep(30)
              except asyncio.CancelledError: ended.append("cancelled"); raise
          return await asyncio.gather(*(asyncio.sleep(0.01, n) for n in range(3)))
      async def parts(task):
          for part in ("bees ", b"\\xff") if task.payload == "bytes" else ("bees ", "dance"):
              await asyncio.sleep(0.01)
              yield part
          if task.payload == "boom": raise RuntimeError("broken")
          if task.payload == "wait":
              try: await asyncio.sleep(30)
              finally: ended.append("closed")
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["later"], handler, max_concurrent=3), swarm.agent(["parts"], parts, max_concurrent=3):
              say(swarm.submit("later").result(20))
              task = swarm.submit("parts", stream=True)
              say([chunk.data for chunk in task.chunks()], task.result(20))
              say(list(swarm.submit("parts", "bytes").result(20)))
              for kind, payload in (("later", "bad"), ("parts", "boom")):
                  try: swarm.submit(kind, payload, maxAttempts=1).result(20)
                  except w.WaggleError as error: say(error.outcome["state"], error.outcome["error"])
              for kind in ("later", "parts"):
                  say(swarm.submit(kind, "wait", maxAttempts=1, timeoutMs=300).outcome(20)["state"])
      say(ended)
    `);
    expect(printed).toEqual([
      ["[0, 1, 2]"],
      [["bees ", "dance"], "bees dance"],
      [[...Buffer.from("bees "), 0xff]],
      ["failed", "no"],
      ["dead-lettered", "broken"],
      ["dead-lettered"],
      ["dead-lettered"],
      [["cancelled", "closed"]],
    ]);
  });

  it("reads the time of a refusal as headers give it, and takes what cannot be read as no time", async () => {
    const printed = await python(`
      import email.utils, time
      from datetime import datetime, timedelta, timezone
      import waggledance as w
      in_a_minute = time.time() + 60
      said = [
          dict(retry_after="30"), dict(retry_after=" 14.5"), dict(retry_after=email.utils.formatdate(in_a_minute, usegmt=True)),
          dict(until=datetime.now(timezone.utc) + timedelta(minutes=1)), dict(until=in_a_minute), dict(until=datetime.fromtimestamp(in_a_minute)),
      ]
      say([5 * round(w.Infrastructure("429", **each).hold["forMs"] / 5000) for each in said])
      unread = [dict(retry_after=each) for each in ("soon", "", "12:30", float("nan"), float("inf"), object(), [])]
      say([w.Infrastructure("429", scope="type", **each).hold for each in [*unread, dict(until="later"), dict(until=object())]])
      with w.connect(url, swarm="test") as swarm:
          for time_of in (dict(retry_after="30"), dict(until=datetime.now() + timedelta(seconds=30))):
              swarm.acquire("gpu").release(reason=ValueError("429"), **time_of)
              hold = swarm.query("status")["holds"][0]
              say(hold["name"], hold["reason"], 25_000 < hold["until"] - time.time() * 1000 < 31_000)
              swarm.nats.ask(f"{swarm.prefix}.operator.unhold", {"on": "resource", "name": "gpu"})
          swarm.acquire("gpu").release(retry_after="soon")
          say(swarm.query("status").get("holds", []))
          swarm.acquire("gpu", timeout=5).release()
    `);
    expect(printed).toEqual([
      [[30, 15, 60, 60, 60, 60]],
      [Array.from({ length: 9 }, () => ({ scope: "type" }))],
      ["gpu", "429", true],
      ["gpu", "429", true],
      [[]],
    ]);
  });

  it("refuses wrong arguments of an agent, and tokens that are no whole numbers", async () => {
    const printed = await python(`
      import waggledance as w
      def refused(call, *of, **options):
          try: call(*of, **options)
          except w.WaggleError as error: say(error.code, error.field, error.message)
      handler = lambda task: task.report_tokens(1.5)
      with w.connect(url, swarm="test") as swarm:
          refused(swarm.agent, "shout", handler)
          refused(swarm.agent, [7], handler)
          refused(swarm.agent, [], handler)
          refused(swarm.agent, ["x"], 5)
          refused(swarm.agent, ["x"], None)
          refused(swarm.agent, ["x"], handler, max_concurrent=0)
          refused(swarm.agent, ["x"], handler, maxConcurrent="4")
          with swarm.acquire("gpu") as slot:
              for wrong in ("950", -1, 1.5, True, {"inputTokens": 5}): refused(slot.report, wrong)
              slot.report(7)
          swarm.acquire("gpu", timeout=5).release()
          with swarm.agent(["uncounted"], handler):
              say(swarm.submit("uncounted", maxAttempts=1).outcome(20)["error"])
    `);
    const invalid = "WAGGLE_INVALID_MESSAGE";
    const tokens = (shown: string) => `report: tokens: must be a whole number of at least 0, not ${shown}`;
    expect(printed).toEqual([
      [invalid, "kinds", `agent: kinds: must be a list of texts, as ["shout"], not 'shout'`],
      [invalid, "kinds", `agent: kinds: must be a list of texts, as ["shout"], not [7]`],
      [invalid, "kinds", "agent: kinds: must name a kind of task, not []"],
      [invalid, "handler", "agent: handler: must be a function of a task, not 5"],
      [invalid, "handler", "agent: handler: must be a function of a task, not None"],
      [invalid, "max_concurrent", "agent: max_concurrent: must be a whole number of at least 1, not 0"],
      [invalid, "max_concurrent", "agent: max_concurrent: must be a whole number of at least 1, not '4'"],
      ...["'950'", "-1", "1.5", "True", "{'inputTokens': 5}"].map((shown) => [
        invalid,
        "tokens",
        tokens(shown),
      ]),
      [expect.stringContaining("report_tokens: count: must be a whole number of at least 0, not 1.5")],
    ]);
  });

  it("refuses to read chunks of a task that was submitted without stream", async () => {
    const printed = await python(`
      import waggledance as w
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["whole"], lambda task: "whole"):
              task = swarm.submit("whole")
              try: task.chunks()
              except w.WaggleError as error: say(error.code, error.field, "stream=True" in error.message)
              say(task.result(20), list(w.client.Task(swarm, task.project, task.id).chunks()))
    `);
    expect(printed).toEqual([
      ["WAGGLE_INVALID_MESSAGE", "stream", true],
      ["whole", []],
    ]);
  });

  it("is written in the syntax of the oldest Python that it declares", async () => {
    const printed = await python(`
      import ast, pathlib, re
      import waggledance
      folder = pathlib.Path(waggledance.__file__).parent
      declared = re.search(r'requires-python = ">=3\\.(\\d+)"', (folder.parent / "pyproject.toml").read_text())
      files = sorted(folder.glob("*.py"))
      for file in files: ast.parse(file.read_text(), feature_version=(3, int(declared[1])))
      say([file.name for file in files if file.name in ("agent.py", "client.py")])
    `);
    expect(printed).toEqual([[["agent.py", "client.py"]]]);
  });

  it("holds slots in turn, and gives up a wait", async () => {
    const printed = await python(`
      import waggledance as w
      with w.connect(url, swarm="test") as swarm:
          with swarm.acquire("gpu") as slot:
              try: swarm.acquire("gpu", timeout=0.2)
              except w.WaggleError as error: say(error.code)
          with swarm.acquire("gpu"): say(swarm.query("status")["resources"][0]["inUse"])
          try: swarm.acquire("nothing")
          except w.WaggleError as error: say(error.code)
          swarm.acquire("gpu").release(retry_after=0.2, reason="429")
          hold = swarm.query("status")["holds"][0]
          say(hold["name"], hold["by"], hold["reason"])
          swarm.acquire("gpu").release()
          lost = swarm.acquire("gpu", idle_timeout=1)
          say(lost.lost.wait(20), len(swarm.query("status").get("holds", [])))
          lost.release(retry_after=0.2, reason="late")
          say(swarm.query("status")["holds"][0]["reason"])
          swarm.acquire("gpu").release()
          for n in range(3):
              say(len(swarm.query("status").get("holds", [])))
              swarm.acquire("gpu").release(unanswered=True)
              swarm.acquire("gpu").release(refused=True, reason="no time")
          hold = swarm.query("status")["holds"][0]
          say(hold["name"], hold["by"], hold["reason"])
    `);
    await swarm.unhold({ resource: "gpu" });
    expect(printed).toEqual([
      ["WAGGLE_ACQUIRE_TIMED_OUT"],
      [1],
      ["WAGGLE_UNKNOWN_RESOURCE"],
      ["gpu", "agent", "429"],
      [true, 0],
      ["late"],
      ...[[0], [0], [0]],
      ["gpu", "refusals", "no time"],
    ]);
  });

  it("tells by the exception of a block whether the resource refused the work", async () => {
    const printed = await python(`
      import waggledance as w
      def fails(error):
          try:
              with swarm.acquire("gpu"): raise error
          except Exception as raised: return raised is error
      quota = w.Infrastructure("quota", scope={"resource": "gpu"})
      with w.connect(url, swarm="test") as swarm:
          say([fails(error) for error in (quota, ValueError("no JSON"), quota, w.Infrastructure("down"))])
          say(swarm.query("status").get("holds", []))
          fails(quota)
          hold = swarm.query("status")["holds"][0]
          say(hold["name"], hold["by"], hold["reason"])
    `);
    await swarm.unhold({ resource: "gpu" });
    expect(printed).toEqual([[[true, true, true, true]], [[]], ["gpu", "refusals", "quota"]]);
  });

  it("says at once that a resource is on hold for longer than a request may wait", async () => {
    const printed = await python(`
      import threading, time
      import waggledance as w
      starts = []
      def asks(task):
          starts.append(task.id)
          with task.acquire("gpu"): return "done"
      def waits():
          try: swarm.acquire("gpu", timeout=5)
          except w.OnHold as error: say("ended", error.resource)
      with w.connect(url, swarm="test") as swarm:
          slot = swarm.acquire("gpu")
          waiting = threading.Thread(target=waits)
          waiting.start()
          while not swarm.query("status")["resources"][0]["waiting"]: time.sleep(0.05)
          slot.release(retry_after=12)
          waiting.join()
          try: swarm.acquire("gpu", timeout=3)
          except w.OnHold as error: say(error.code, error.resource, 5 < error.until - time.time() <= 12)
          with swarm.agent(["asks"], asks):
              task = swarm.submit("asks", timeoutMs=3_000, maxAttempts=1)
              while not swarm.query("status")["tasks"]["queued"] or not starts: time.sleep(0.05)
              say("refused", len(starts))
              say(task.result(20), len(starts))
    `);
    expect(printed).toEqual([
      ["ended", "gpu"],
      ["WAGGLE_ON_HOLD", "gpu", true],
      ["refused", 1],
      ["done", 2],
    ]);
  });

  it("says what slots are for, touches them, and settles their tokens", async () => {
    await swarm.setProject("acme", { budget: { tokens: 1_000, windowMs: 60_000 } });
    const printed = await python(`
      import waggledance as w
      of = lambda: next(p["budget"] for p in swarm.query("status")["projects"] if p["project"] == "acme")
      with w.connect(url, swarm="test") as swarm:
          with swarm.acquire("gpu", tokens=600, project="acme", user="ann", label="report", as_="analyst", idle_timeout=5) as slot:
              holder = swarm.query("status")["resources"][0]["holders"][0]
              say(*(holder[name] for name in ("as", "label", "project", "user", "tokens")), "idleAt" in holder)
              say(of()["reserved"], slot.touch())
              slot.report(100)
              slot.report(20, partial=True)
          say(of()["reserved"], of()["spent"])
          try: swarm.acquire("gpu", tokens=2000, project="acme")
          except w.WaggleError as error: say(error.code)
    `);
    expect(printed).toEqual([
      ["analyst", "report", "acme", "ann", 600, true],
      [600, true],
      [0, 120],
      ["WAGGLE_OVER_BUDGET"],
    ]);
  });

  it("puts the resource on hold before its slot is free where a handler names the resource", async () => {
    const printed = await python(`
      import waggledance as w
      seen = []
      def limited(task):
          task.acquire("gpu")
          seen.append(task.attempt)
          if len(seen) == 1: raise w.Infrastructure("quota", retry_after=1, scope={"resource": "gpu"})
          return "done"
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["of-gpu"], limited, id="of-gpu"):
              say(swarm.submit("of-gpu").result(20))
              mine = [e["type"] for e in swarm.events() if e.get("reportedBy") == "of-gpu" or e.get("agent") == "of-gpu"]
              say(mine.index("HoldPlaced") < mine.index("SlotReleased"))
    `);
    expect(printed).toEqual([["done"], [true]]);
  });

  it("tells the holder of a forgotten slot that its handler has ended", async () => {
    const printed = await python(`
      import waggledance as w
      kept = []
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["forgets"], lambda task: kept.append(task.acquire("gpu")), id="forgets"):
              swarm.submit("forgets").result(20)
              say(kept[0].lost.is_set(), swarm.query("status")["resources"][0]["inUse"])
    `);
    expect(printed).toEqual([[true, 0]]);
  });

  it("puts itself on hold where a quota refuses the work", async () => {
    const printed = await python(`
      import waggledance as w, time
      seen = []
      def limited(task):
          seen.append(time.monotonic())
          if len(seen) == 1: raise w.Infrastructure("quota", retry_after=1)
          return "done"
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["limited"], limited, id="limited"):
              task = swarm.submit("limited")
              say(task.result(20), len(seen), round(seen[1] - seen[0]) >= 1)
    `);
    expect(printed).toEqual([["done", 2, true]]);
  });

  it("refuses what is too large, and floods of chunks leave in messages that the server takes", async () => {
    const printed = await python(`
      import waggledance as w
      def handler(task):
          if task.payload == "large": return "x" * 300000
          return ("a" for _ in range(60000))
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["much"], handler, id="much"):
              try: swarm.submit("much", "x" * 300000)
              except w.WaggleError as error: say(error.code, error.field)
              try: swarm.submit("much", "large", maxAttempts=1).result(20)
              except w.WaggleError as error: say(error.outcome["error"])
              task = swarm.submit("much", "stream", stream=True)
              say(len("".join(chunk.data for chunk in task.chunks())) > 50000, len(task.result(20)))
    `);
    expect(printed).toEqual([
      ["WAGGLE_INVALID_MESSAGE", "payload"],
      ["the result has 300000 bytes, above the maximum of 262144"],
      [true, 60_000],
    ]);
  });

  it("reads events, and says coded errors", async () => {
    const printed = await python(`
      import waggledance as w, os, tempfile
      with w.connect(url, swarm="test") as swarm:
          say([event["type"] for event in swarm.events()][:2])
          task = swarm.submit("nobody", id="waits")
          try: task.outcome(0.3)
          except w.WaggleError as error: say(error.code)
          try: swarm.submit("nobody", id="waits", priority=1)
          except w.WaggleError as error: say(error.code)
          try: swarm.submit("two words")
          except w.WaggleError as error: say(error.code, error.field)
          try: swarm.task("unknown").outcome(5)
          except w.WaggleError as error: say(error.code)
      os.chdir(tempfile.mkdtemp())
      try: w.connect()
      except w.WaggleError as error: say(error.code)
      try: w.connect("nats://127.0.0.1:1")
      except w.WaggleError as error: say(error.code)
      for wrong in ("nats://127.0.0.1:none", "http://127.0.0.1", ","):
          try: w.connect(wrong)
          except w.WaggleError as error: say(error.code, error.field)
      try: w.connect(url.replace("for-tests-only", "wrong"))
      except w.WaggleError as error: say(error.code)
    `);
    expect(printed).toEqual([
      [["TermStarted", expect.any(String)]],
      ["WAGGLE_WAIT_TIMED_OUT"],
      ["WAGGLE_CONFLICT"],
      ["WAGGLE_INVALID_MESSAGE", "kind"],
      ["WAGGLE_UNKNOWN_TASK"],
      ["WAGGLE_NO_BROKER"],
      ["WAGGLE_UNREACHABLE"],
      ["WAGGLE_INVALID_CONFIG", "url"],
      ["WAGGLE_INVALID_CONFIG", "url"],
      ["WAGGLE_INVALID_CONFIG", "url"],
      ["WAGGLE_UNAUTHORIZED"],
    ]);
  });

  it("obeys a revocation, a second process under its id, and a lost connection", async () => {
    const printed = await python(`
      import waggledance as w, socket, time
      def slow(task):
          task.aborted.wait(20)
          return "aborted" if task.aborted.is_set() else "late"
      with w.connect(url, swarm="test") as swarm:
          first = swarm.agent(["slow", "quick"], lambda task: slow(task) if task.kind == "slow" else "q", max_concurrent=2, id="twin")
          task = swarm.submit("slow", maxAttempts=1)
          while not first.held: time.sleep(0.01)
          say(task.id)
          swarm.nats.socket.shutdown(socket.SHUT_RDWR)
          say(swarm.submit("quick").result(20))
          swarm.nats.ask(f"{swarm.prefix}.project.default.revoke", {"tasks": [{"task": task.id, "attempt": 1}]})
          say(task.outcome(20)["state"])
          second = w.connect(url, swarm="test").agent(["quick"], lambda task: "second", id="twin")
          say(first.ended.wait(20), first.error.code)
          say(swarm.submit("quick").result(20))
          say(second.drain(20))
    `);
    expect(printed.slice(1)).toEqual([["q"], ["dead-lettered"], [true, "WAGGLE_FENCED"], ["second"], [true]]);
  });

  it("raises the refusal where a grant no longer permits the agent, and at the end of its block", async () => {
    const printed = await python(`
      import waggledance as w
      with w.connect(url, swarm="test") as swarm:
          try:
              with swarm.agent(["granted"], lambda task: "x", id="bounded", group="bound") as agent:
                  swarm.nats.ask(f"{swarm.prefix}.operator.grant", {"group": "bound", "grant": {"kinds": ["other"]}})
                  say(agent.ended.wait(20), agent.error.code, agent.error.field)
          except w.WaggleError as error: say(error.code, error.field)
          try: swarm.agent(["granted"], lambda task: "x", id="again", group="bound")
          except w.WaggleError as error: say(error.code, error.field)
          try: agent.acquire("gpu")
          except w.WaggleError as error: say(error.code)
          swarm.nats.ask(f"{swarm.prefix}.operator.grant", {"group": "bound", "grant": None})
    `);
    expect(printed).toEqual([
      [true, "WAGGLE_FORBIDDEN", "kinds"],
      ["WAGGLE_FORBIDDEN", "kinds"],
      ["WAGGLE_FORBIDDEN", "kinds"],
      ["WAGGLE_FORBIDDEN"],
    ]);
  });

  it("ends with WAGGLE_UNAUTHORIZED when the server refuses its credentials for a while", async () => {
    const refusing = await startTestBroker();
    const printed = await python(
      `
      import waggledance as w
      w.connection.REFUSED_SECONDS = 0.5
      swarm = w.connect(url, swarm="test")
      swarm.nats.token = "revoked"
      swarm.nats.hang_up()
      try: swarm.query("status")
      except w.WaggleError as error: say(error.code)
      try: swarm.submit("x")
      except w.WaggleError as error: say(error.code)
    `,
      refusing.url,
    );
    await refusing.close();
    expect(printed).toEqual([["WAGGLE_UNAUTHORIZED"], ["WAGGLE_UNAUTHORIZED"]]);
  });

  it("names a task without an answer, so that a second submission repeats the task", async () => {
    const ids: string[] = [];
    const silent = broker.transport.subscribe("waggle.v1.silent.>", ({ data }) => {
      ids.push(JSON.parse(Buffer.from(data).toString()).tasks[0].id);
    });
    await broker.transport.flush();
    const printed = await python(`
      import waggledance as w
      def failed(swarm, **task):
          try: swarm.submit("x", timeout=0.3, **task)
          except w.WaggleError as error:
              say(error.code, error.task, error.task in error.message)
              return error
      with w.connect(url, swarm="silent") as swarm:
          first = failed(swarm)
          failed(swarm, id=first.task)
          say(list(swarm.tasks))
      with w.connect(url, swarm="idle") as swarm: failed(swarm, id="mine")
    `);
    silent.unsubscribe();
    const unknown = ["WAGGLE_OUTCOME_UNKNOWN", ids[0], true];
    expect(printed).toEqual([unknown, unknown, [[]], ["WAGGLE_NO_LEADER", "mine", false]]);
    expect(ids.length).toBeGreaterThanOrEqual(2);
    expect(new Set(ids).size).toBe(1);
  });

  it("asks nothing under a name with characters that subjects do not have, or after a wait that is no time", async () => {
    const printed = await python(`
      import waggledance as w
      def refused(call):
          try: call()
          except w.WaggleError as error: say(error.code, error.field)
      with w.connect(url, swarm="test") as swarm:
          refused(lambda: swarm.submit("x", project="a b"))
          refused(lambda: swarm.query("status", project="a.b"))
          refused(lambda: list(swarm.events(project="*")))
          refused(lambda: swarm.agent(["x"], print, id="a b"))
          refused(lambda: swarm.agent(["x"], print, group="a.b"))
          refused(lambda: swarm.submit("x", timeout="3"))
          refused(lambda: swarm.submit("x", deadline=object()))
          refused(lambda: swarm.acquire("gpu", idle_timeout="5"))
      refused(lambda: swarm.submit("x"))
      refused(lambda: swarm.agent(["x"], print))
      refused(lambda: list(swarm.events()))
      refused(lambda: w.connect(url, swarm="a b"))
      refused(lambda: w.connect(url, inbox_prefix="foo"))
    `);
    expect(printed).toEqual([
      ...["project", "project", "project", "id", "group", "timeout", "deadline", "idle_timeout"].map(
        (field) => ["WAGGLE_INVALID_MESSAGE", field],
      ),
      ...[0, 1, 2].map(() => ["WAGGLE_UNREACHABLE", null]),
      ["WAGGLE_INVALID_CONFIG", "swarm"],
      ["WAGGLE_INVALID_CONFIG", "inbox_prefix"],
    ]);
  });

  it("reports results that together are larger than a message", async () => {
    const printed = await python(`
      import threading
      import waggledance as w
      together = threading.Barrier(6)
      def handler(task):
          if task.payload == "grows": return "\\0" * 250_000
          together.wait(20)
          return "x" * 250_000
      with w.connect(url, swarm="test") as swarm:
          with swarm.agent(["large"], handler, max_concurrent=6):
              say([len(task.result(20)) for task in [swarm.submit("large") for _ in range(6)]])
              say(swarm.submit("large", "grows", maxAttempts=1).outcome(20)["error"])
    `);
    const why = /^the result needs \d+ bytes in a message, and the server accepts \d+$/;
    expect(printed).toEqual([[Array.from({ length: 6 }, () => 250_000)], [expect.stringMatching(why)]]);
  });

  it("sends nothing but messages of the wire", () => {
    expect(wrong).toEqual([]);
    expect([...verbs].sort()).toEqual(Object.keys(schemaByVerb).sort());
  });
});

for (const { path, version } of natsServersFor("the client for Python")) {
  describe.runIf(hasProgram("python3", "the client for Python"))(`in Python, nats-server ${version}`, () => {
    it("ends a wait, chunks and an agent whose messages the server does not let through", async () => {
      const server = await startNatsServer({
        binary: path,
        extraConfig: `authorization { users: [ { user: mute, password: x, permissions: {
          publish: [">"], subscribe: { allow: ["_INBOX_mute.>"], deny: ["_INBOX_mute.*.done", "_INBOX_mute.*.chunk"] }
        } } ] }`,
      });
      const printed = await python(
        `
        import time
        import waggledance as w
        def of(call):
            started = time.monotonic()
            try: call()
            except w.WaggleError as error: say(error.code, error.message, time.monotonic() - started < 1)
        with w.connect(url, inbox_prefix="_INBOX_mute") as swarm:
            of(lambda: swarm.task("t1").outcome())
            of(lambda: list(swarm.task("t1").chunks()))
            of(lambda: swarm.agent(["x"], print, id="a1"))
      `,
        server.url.replace("//", "//mute:x@"),
      );
      await server.stop();
      const forbidden = (subject: string, remedy: string) => [
        "WAGGLE_FORBIDDEN",
        expect.stringMatching(`subscribe to ${subject}\\. No .* can arrive\\. ${remedy}`),
        true,
      ];
      expect(printed).toEqual([
        forbidden("_INBOX_mute\\.\\w+\\.done", "Set an inbox prefix that is permitted"),
        forbidden("_INBOX_mute\\.\\w+\\.chunk", "Set an inbox prefix that is permitted"),
        forbidden("waggle\\.v1\\.default\\.agent\\._\\.a1\\.assign", "Name a group that is permitted"),
      ]);
    });
  });
}

/** Runs a program. @returns the arguments of its calls of `say` */
async function python(program: string, url = broker.url): Promise<unknown[]> {
  const indent = /^\n( *)/.exec(program)?.[1] ?? "";
  const lines = program.split("\n").map((line) => line.slice(indent.length));
  const head = `import json, sys; url = ${JSON.stringify(url)}; say = lambda *all: print(json.dumps(all), flush=True)`;
  const child = spawn("python3", ["-c", [head, ...lines].join("\n")], {
    env: { PATH: process.env["PATH"], PYTHONPATH: folder },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (data: Buffer) => {
    stdout += data;
  });
  child.stderr.on("data", (data: Buffer) => {
    stderr += data;
  });
  const [code] = await once(child, "close");
  expect([code, stderr]).toEqual([0, ""]);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
