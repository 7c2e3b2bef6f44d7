import assert from "node:assert/strict";
import { test } from "node:test";
import { Splitter } from "../src/splitter.js";

/** Returns the objects of the text when it arrives in chunks of the given length. */
function split(text, length, limit = 1000) {
  const splitter = new Splitter(limit), found = [];
  for (let at = 0; at < text.length; at += length) {
    splitter.push(text.slice(at, at + length));
    for (let object; (object = splitter.next()) !== undefined; ) found.push(object);
  }
  return { found, isEmpty: splitter.isEmpty };
}

const objects = ['{"a":"}{\\"\\\\"}', '{"b":[{},[[]]]}', "{}", '{"c":"\\u005d]"}'];

test("objects are found however they are split", () => {
  for (const separator of ["", "\n", " \r\n\t"]) {
    const text = objects.join(separator) + separator;
    for (let length = 1; length <= text.length; length++) {
      assert.deepEqual(split(text, length), { found: objects, isEmpty: true });
    }
  }
});

test("a text that is cut is unfinished", () => {
  for (let end = 1; end < objects[0].length; end++) {
    assert.deepEqual(split(objects[0].slice(0, end), 3), { found: [], isEmpty: false });
  }
});

test("what is no object is refused", () => {
  for (const text of ["1", "[{}]", "}", "<html>", '"a"', "{}null"]) assert.throws(() => split(text, 2), { code: "Corrupt" });
});

test("size and depth are limited", () => {
  const long = `{"a":"${"x".repeat(100)}"}`;
  for (const length of [1, 7, 1000]) {
    assert.equal(split(long, length, long.length).found.length, 1);
    assert.throws(() => split(long, length, long.length - 1), { code: "Corrupt" });
    assert.throws(() => split(long.slice(0, 90), length, 80), { code: "Corrupt" }, "before its end");
  }
  assert.throws(() => split(`{"a":${"[".repeat(20_000)}`, 1000, 1e6), { code: "Corrupt" });
});
