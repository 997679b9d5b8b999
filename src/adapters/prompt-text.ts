// The length of a prompt, for its weight and its estimate of tokens. Frameworks nest the text of a prompt in messages
// and parts of messages; images and files beside the text count nothing.

/** Fields that hold text, or that hold what holds text, in the requests of all five frameworks. */
const textFields = ["text", "content", "input", "prompt", "messages", "system", "instructions", "output"];

/** A message holds parts, and a part holds text: deeper values are data. */
const DEPTH_MAX = 6;

/** @param prompt text, a message, a list of messages, or a request that has them
 *  @returns characters ≥ 0; 0 for anything else */
export function promptCharacters(prompt: unknown, depth = 0): number {
  if (typeof prompt === "string") return prompt.length;
  if (typeof prompt !== "object" || prompt === null || depth > DEPTH_MAX) return 0;
  const held = Array.isArray(prompt) ? prompt : textFields.map((name) => Reflect.get(prompt, name));
  return held.reduce((sum: number, each: unknown) => sum + promptCharacters(each, depth + 1), 0);
}
