import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, ResumePoint } from "../src/resume.js";

const event = (type, name, resourceVersion) => ({ type, object: { metadata: { name, resourceVersion } } });

test("versions are compared as numbers of any length", () => {
  const sorted = ["9", "10", "9007199254740992", "9007199254740993", "18446744073709551615"];
  assert.deepEqual([...sorted].reverse().sort(compare), sorted);
});

test("a version that is no number below 2^64 is an error", () => {
  for (const version of ["abc-1", "1.5", "-3", "007", "18446744073709551616", "99999999999999999999", undefined]) {
    assert.throws(() => new ResumePoint("4").admit(event("ADDED", "a", version)), { code: "Unsupported" }, version);
  }
});

test("a watch resumes before a group of events with one version", () => {
  const point = new ResumePoint("4");
  assert.ok(point.admit(event("ADDED", "a", "5")));
  assert.ok(point.admit(event("ADDED", "b", "7")));
  assert.equal(point.version, "5");
  assert.equal(point.admit(event("ADDED", "b", "7")), undefined, "a repetition");
  assert.ok(point.admit(event("ADDED", "c", "7")));
  assert.ok(point.admit(event("BOOKMARK", "", "7")));
  assert.equal(point.version, "7");
});

test("an event that goes back is refused", () => {
  const point = new ResumePoint("10");
  for (const version of ["9", "10"]) assert.throws(() => point.admit(event("ADDED", "a", version)), { code: "Corrupt" });
});

test("a version that is no decimal number is refused", () => {
  for (const version of ["", "0", "007", "abc", "-3", "1.5", 5, undefined]) {
    assert.throws(() => new ResumePoint("1").admit(event("ADDED", "a", version)), { code: "Unsupported" });
  }
});

test("the first bookmark ends the initial events", () => {
  const point = new ResumePoint();
  assert.equal(point.admit(event("ADDED", "a", "9")).type, "ADDED");
  assert.equal(point.admit(event("ADDED", "b", "3")).type, "ADDED");
  assert.equal(point.synced, false);
  assert.equal(point.admit(event("BOOKMARK", "", "12")).type, "SYNCED");
  assert.equal(point.version, "12");
  assert.equal(point.admit(event("BOOKMARK", "", "11")), undefined, "an older bookmark after a resume");
});
