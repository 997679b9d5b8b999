// Values of user code that throw or misbehave when read.

import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { InfrastructureError, InvalidInputError } from "../../src/agent/handler.ts";

const bang = (): never => {
  throw new TypeError("read at your own risk");
};

class ApiError extends Error {
  readonly response: { data: string } | undefined = undefined;
  override get message(): string {
    return (this.response as unknown as { data: string }).data;
  }
}

/** Every trap throws, including the traps of `instanceof` and `typeof`. */
function throwingProxy(target: object): object {
  const traps = Object.fromEntries(
    Object.getOwnPropertyNames(Reflect)
      .filter((name) => typeof (Reflect as unknown as Record<string, unknown>)[name] === "function")
      .map((name) => [name, bang]),
  );
  return new Proxy(target, traps);
}

function revokedProxy(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function throwsOn(property: PropertyKey, target: object): object {
  return Object.defineProperty(target, property, { get: bang, enumerable: true });
}

function cyclic(): Error {
  const error = new Error("it is its own cause");
  error.cause = error;
  return error;
}

function endless(): Error {
  const error = new Error("m");
  return Object.defineProperty(error, "message", { get: () => error.message });
}

export const nastyValues: readonly (readonly [string, () => unknown])[] = [
  ["an error whose message reads a response that is not there", () => new ApiError()],
  ["an object of DOMException's prototype", () => Object.create(DOMException.prototype)],
  ["an object of Error's prototype", () => Object.create(Error.prototype)],
  ["an object without a prototype", () => Object.create(null)],
  ["a proxy whose traps throw", () => throwingProxy({})],
  ["a proxy of an error whose traps throw", () => throwingProxy(new Error("inside"))],
  ["a proxy of a function whose traps throw", () => throwingProxy(bang)],
  ["a revoked proxy", () => revokedProxy({})],
  ["a revoked proxy of a function", () => revokedProxy(bang)],
  ["null", () => null],
  ["undefined", () => undefined],
  ["a symbol", () => Symbol("why")],
  ["a function", () => bang],
  ["a bigint", () => 12n],
  ["NaN", () => Number.NaN],
  ["no text", () => ""],
  ["half a character", () => "\ud83d"],
  ["a huge text", () => "🐝".repeat(1_000_000)],
  ["an error with a huge message", () => new Error("🐝".repeat(1_000_000))],
  ["an error that is its own cause", cyclic],
  ["an error whose message asks for itself", endless],
  ["an error of another realm", () => runInNewContext("new TypeError('elsewhere')")],
  ["an error whose message is no text", () => Object.assign(new Error("m"), { message: { toString: bang } })],
  ["an error whose message is a symbol", () => Object.assign(new Error("m"), { message: Symbol("x") })],
  ["an error whose name is a symbol", () => Object.assign(new Error("m"), { name: Symbol("x") })],
  ["a date that is none", () => new Date(Number.NaN)],
  ["an object that inspects badly", () => ({ [Symbol.for("nodejs.util.inspect.custom")]: bang })],
  ["an object that converts badly", () => ({ [Symbol.toPrimitive]: bang, toString: bang, valueOf: bang })],
  [
    "a class that claims every instance",
    () => Object.defineProperty(class {}, Symbol.hasInstance, { value: bang }),
  ],
  ...["message", "name", "code", "cause", "stack", "constructor", "toString", "toJSON", "then"].flatMap(
    (property): [string, () => unknown][] => [
      [`an error whose ${property} throws`, () => throwsOn(property, new Error("readable"))],
      [`an object whose ${property} throws`, () => throwsOn(property, {})],
      [
        `input that is invalid, whose ${property} throws`,
        () => throwsOn(property, new InvalidInputError("m")),
      ],
      [`infrastructure, whose ${property} throws`, () => throwsOn(property, new InfrastructureError("m"))],
    ],
  ),
];

/** The named values, each also wrapped in an object, a list or an error, and arbitrary values of fast-check. */
export const aNastyValue: fc.Arbitrary<() => unknown> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(...nastyValues.map(([, make]) => make)),
      fc.constantFrom("bare", "object", "list", "cause"),
    )
    .map(([make, how]) => () => {
      if (how === "object") return { inside: make() };
      if (how === "list") return [make(), make()];
      return how === "cause" ? new Error("outside", { cause: make() }) : make();
    }),
  fc
    .anything({ withBigInt: true, withNullPrototype: true, withTypedArray: true, withSparseArray: true })
    .map((value) => () => value),
  fc.tuple(fc.string({ unit: "binary" }), fc.string({ unit: "binary" })).map(([name, message]) => () => {
    const error = new Error(message);
    error.name = name;
    return error;
  }),
);
