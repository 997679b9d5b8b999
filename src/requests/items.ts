// The items of a request, checked one by one: a wrong item is answered with its error, and its neighbours are decided.

import type { CodedError } from "../protocol/schemas.ts";

const nothingWrong: ReadonlyMap<number, CodedError> = new Map();

export class Items<Item> {
  /** In the order of the request. */
  readonly right: readonly Item[];
  readonly #wrongByPlace: ReadonlyMap<number, CodedError>;

  /** @param wrongByPlace errors of the other items, by place in the request */
  constructor(right: readonly Item[], wrongByPlace = nothingWrong) {
    this.right = right;
    this.#wrongByPlace = wrongByPlace;
  }

  /** One value per item of the request, in order. @param ofRight takes the nth right item, from 0 */
  map<Value>(ofRight: (item: Item, nth: number) => Value, ofWrong: (error: CodedError) => Value): Value[] {
    const values: Value[] = [];
    let nth = 0;
    for (const item of this.right) {
      this.#addWrong(values, ofWrong);
      values.push(ofRight(item, nth));
      nth += 1;
    }
    this.#addWrong(values, ofWrong);
    return values;
  }

  /** Adds the values of the wrong items that come next. */
  #addWrong<Value>(values: Value[], ofWrong: (error: CodedError) => Value): void {
    for (;;) {
      const error = this.#wrongByPlace.get(values.length);
      if (error === undefined) return;
      values.push(ofWrong(error));
    }
  }
}
