/**
 * SDK types: whether request bodies, as JSON values, are what an official SDK's types say a request is.
 *
 * The bodies are written as object literals of one program and compiled, so that unknown fields count as errors too.
 */
import path from 'node:path';
import ts from 'typescript';

/** A compiler starts, and reads the types of a whole SDK: for the time limit of tests. */
export const CHECK_BODIES_MS = 60_000;

/** Lies beside the tests, so that packages are found; it is never written. */
const FILE = path.resolve('test/support/sdk-bodies.generated.ts');

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  // What else the SDK refers to is not in a request, and takes seconds to load.
  lib: ['lib.es2023.d.ts'],
  types: [],
  strict: true,
  skipLibCheck: true,
  noEmit: true,
};

/**
 * Checks bodies against a type.
 *
 * @param typeImport - The whole import, such as `import type { A } from 'sdk';`.
 * @param typeExpression - The type of a body, such as `A.Request`.
 * @param bodies - JSON values.
 * @returns What the compiler says, each with the number of its body; empty if all fit.
 */
export function checkBodies(typeImport: string, typeExpression: string, bodies: readonly unknown[]): string[] {
  // One line each: the line tells which body it is.
  const lines = bodies.map((body, at) => `export const body${at}: ${typeExpression} = ${literal(body)};`);
  const source = [typeImport, ...lines].join('\n');
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, ...rest) => (isGenerated(name) ? ts.createSourceFile(name, source, ts.ScriptTarget.ES2022) : getSourceFile.call(host, name, ...rest));
  host.fileExists = (name) => isGenerated(name) || fileExists.call(host, name);
  host.readFile = (name) => (isGenerated(name) ? source : readFile.call(host, name));
  const program = ts.createProgram([FILE], OPTIONS, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const said = ts.flattenDiagnosticMessageText(messageText, '\n');
    if (file === undefined || start === undefined) return said;
    const { line } = file.getLineAndCharacterOfPosition(start);
    return isGenerated(file.fileName) ? `${line === 0 ? 'the import' : `body ${line - 1}`}: ${said}` : `${file.fileName}: ${said}`;
  });
}

function isGenerated(name: string): boolean {
  return path.resolve(name) === FILE;
}

/** JSON is TypeScript, but for the two line ends that JSON allows within texts. */
function literal(body: unknown): string {
  return JSON.stringify(body).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}
