/**
 * Owns what a test run prints: a line per folder as it finishes, failures in full, and the counts, all taken from
 * the runner's report. Who prints the last line and exits by it is scripts/test.js.
 */

import { appendFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** @import { Reporter, SerializedError, TestCase, TestModule, TestSpecification, TestSuite, Vitest } from 'vitest/node' */

/**
 * @typedef {'passed' | 'failed' | 'skipped'} Status
 * @typedef {{ name: string, file: string, status: Status, ms: number }} TestLine
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 * @typedef {{ files: number, counts: Counts, ms: number }} Folder
 */

/** @returns {Counts} */
const noCounts = () => ({ passed: 0, failed: 0, skipped: 0 });

/**
 * The words every test-like script ends with.
 *
 * @param {Counts} counts
 */
export function formatCounts({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** @implements {Reporter} */
export class CountReporter {
  counts = noCounts();

  /** @type {Map<string, Folder & { left: number }>} */
  #folders = new Map();

  /** @type {Set<TestModule>} */
  #reported = new Set();

  /** @type {{ json: boolean, reportFile: string | undefined }} */
  #options;

  /** @type {Vitest | undefined} */
  #vitest;

  /** @param {{ json: boolean, reportFile: string | undefined }} options `reportFile` gets the JSON lines too. */
  constructor(options) {
    this.#options = options;
  }

  /** @param {Vitest} vitest */
  onInit(vitest) {
    this.#vitest = vitest;
  }

  /** @param {readonly TestSpecification[]} specifications */
  onTestRunStart(specifications) {
    for (const { project, moduleId } of specifications) {
      this.#folder(project.config.root, moduleId).left += 1;
    }
  }

  /** @param {TestModule} module */
  onTestModuleEnd(module) {
    this.#report(module);
  }

  /**
   * @param {readonly TestModule[]} modules
   * @param {readonly SerializedError[]} unhandled
   */
  onTestRunEnd(modules, unhandled) {
    for (const module of modules) this.#report(module);
    for (const error of unhandled) {
      this.#add({ name: `unhandled: ${error.message}`, file: '', status: 'failed', ms: 0 });
      this.#vitest?.logger.printError(error, { type: 'Unhandled error' });
    }
    this.#write({ ...this.counts });
  }

  /** @param {TestModule} module */
  #report(module) {
    if (this.#reported.has(module)) return;
    this.#reported.add(module);
    const folder = this.#folder(module.project.config.root, module.moduleId);
    const file = module.relativeModuleId;

    const lines = [...module.children.allTests()].map((test) => toLine(test, file));
    for (const part of [module, ...module.children.allSuites()]) {
      if (part.errors().length > 0) lines.push({ name: `loading ${nameOf(part)}`, file, status: 'failed', ms: 0 });
    }
    for (const line of lines) {
      this.#add(line);
      folder.counts[line.status] += 1;
    }
    this.#printFailures(module);

    folder.files += 1;
    folder.left -= 1;
    folder.ms += module.diagnostic().duration;
    if (folder.left <= 0) this.#printFolder(dirname(file), folder);
  }

  /** @param {TestModule} module */
  #printFailures(module) {
    for (const part of [module, ...module.children.allSuites(), ...module.children.allTests()]) {
      const errors = part.type === 'test' ? (part.result().errors ?? []) : part.errors();
      if (errors.length === 0) continue;
      this.#print(`\nFAILED ${module.relativeModuleId} > ${nameOf(part)}`);
      for (const error of errors) this.#vitest?.logger.printError(error, { project: module.project });
    }
  }

  /**
   * @param {string} name
   * @param {Folder} folder
   */
  #printFolder(name, { files, counts, ms }) {
    const time = `${(ms / 1000).toFixed(1)} s`;
    this.#print(`${name.padEnd(32)} ${String(files).padStart(3)} files  ${time.padStart(8)}  ${formatCounts(counts)}`);
  }

  /**
   * @param {string} root
   * @param {string} moduleId
   */
  #folder(root, moduleId) {
    const key = `${root}:${dirname(moduleId)}`;
    let folder = this.#folders.get(key);
    if (folder === undefined) {
      folder = { files: 0, counts: noCounts(), ms: 0, left: 0 };
      this.#folders.set(key, folder);
    }
    return folder;
  }

  /** @param {TestLine} line */
  #add(line) {
    this.counts[line.status] += 1;
    this.#write(line);
  }

  /** @param {TestLine | Counts} line */
  #write(line) {
    const text = `${JSON.stringify(line)}\n`;
    if (this.#options.json) process.stdout.write(text);
    if (this.#options.reportFile !== undefined) appendFileSync(this.#options.reportFile, text);
  }

  /** @param {string} text */
  #print(text) {
    (this.#options.json ? process.stderr : process.stdout).write(`${text}\n`);
  }
}

/**
 * @param {TestCase} test
 * @param {string} file
 * @returns {TestLine}
 */
function toLine(test, file) {
  const { state } = test.result();
  // A test that never got a result (its worker died) has failed.
  const status = state === 'pending' ? 'failed' : state;
  return { name: test.fullName, file, status, ms: Math.round(test.diagnostic()?.duration ?? 0) };
}

/** @param {TestModule | TestSuite | TestCase} part */
function nameOf(part) {
  return part.type === 'module' ? 'the file' : part.fullName;
}
