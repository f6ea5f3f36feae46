/**
 * Texts: what people, models and tools of a coding session write, in five kinds that tokenizers treat differently. Made up
 * line by line; no line of a text is quite another's.
 */
import type { Dice } from './dice.ts';

export type TextKind = 'code' | 'log' | 'json' | 'english' | 'chinese';

export const TEXT_KINDS: readonly TextKind[] = ['code', 'log', 'json', 'english', 'chinese'];

const VERBS = ['load', 'parse', 'merge', 'resolve', 'flush', 'schedule', 'validate', 'retry', 'cancel', 'render', 'index', 'decode'];
const NOUNS = ['config', 'session', 'token', 'queue', 'invoice', 'cache', 'worker', 'schema', 'cursor', 'payload', 'ledger', 'route'];
const TYPES = ['string', 'number', 'Buffer', 'Promise<void>', 'readonly Order[]', 'Map<string, Entry>', 'AbortSignal', 'unknown'];
const SENTENCES = [
  'The retry loop gives up after the third attempt, although the server asked for a longer pause.',
  'We should keep the old endpoint for one more release and log every caller that still uses it.',
  'Nothing reads this table any more, so the migration may drop the column in a second step.',
  'Under load the worker holds its lock while it waits for the network, and everything behind it stalls.',
  'The test passes alone and fails with the others: it depends on a clock that another test has moved.',
  'A customer reported that exports of more than ten thousand rows end in the middle of a line.',
  'Please make sure that the command line tool prints the same totals as the dashboard does.',
  'It is cheaper to compute the checksum once, when the file is written, than on every read.',
];
const CHINESE = [
  '请先阅读配置文件,然后找出为什么缓存没有失效。',
  '这个函数在并发情况下会丢失最后一次更新,需要加锁或者改用队列。',
  '测试环境里没有问题,但是生产环境每天凌晨都会超时。',
  '我们决定保留旧接口一个版本,同时记录所有调用者。',
  '数据库迁移分两步进行:先停止写入,再删除字段。',
  '导出超过一万行时,文件会在中间断开,用户已经反馈了三次。',
  '日志显示连接池已经耗尽,重试之后仍然失败。',
];

const LINES: Readonly<Record<TextKind, (dice: Dice) => string>> = {
  code: codeLine,
  log: logLine,
  json: (dice) =>
    `{"id":"${hex(dice)}${hex(dice)}","${dice.pick(NOUNS)}":{"${dice.pick(VERBS)}Count":${dice.between(0, 99_999)},"ok":${dice.chance(0.8)},"tags":["${dice.pick(NOUNS)}","${dice.pick(VERBS)}"]},"at":17${dice.between(10_000_000, 99_999_999)}},`,
  english: (dice) => `${dice.pick(SENTENCES)} ${dice.chance(0.3) ? `See ${dice.pick(NOUNS)} #${dice.between(1, 4000)}. ` : ''}${dice.pick(SENTENCES)}`,
  chinese: (dice) => `${dice.between(1, 400)}、${dice.pick(CHINESE)}${dice.pick(CHINESE)}`,
};

/** A text of a kind and of about this many bytes in UTF-8, at least a line of it cut short. */
export function makeText(kind: TextKind, bytes: number, dice: Dice): string {
  const bytesPerUnit = kind === 'chinese' ? 2.9 : 1;
  const length = Math.max(1, Math.round(bytes / bytesPerUnit));
  const line = LINES[kind];
  const lines: string[] = [];
  let size = 0;
  while (size < length) {
    const next = line(dice);
    lines.push(next);
    size += next.length + 1;
  }
  return lines.join('\n').slice(0, length);
}

/** A sentence or a few, as a model writes them between its calls. */
export function makeProse(sentences: number, dice: Dice): string {
  const list = dice.chance(0.15) ? CHINESE : SENTENCES;
  return Array.from({ length: sentences }, () => `${dice.pick(list)} (${dice.pick(VERBS)}${capital(dice.pick(NOUNS))}, line ${dice.between(1, 900)})`).join(' ');
}

function codeLine(dice: Dice): string {
  const indent = '  '.repeat(dice.between(0, 3));
  const [verb, noun, other] = [dice.pick(VERBS), dice.pick(NOUNS), dice.pick(NOUNS)];
  switch (dice.between(0, 6)) {
    case 0:
      return `export async function ${verb}${capital(noun)}(${other}: ${dice.pick(TYPES)}): Promise<${capital(noun)}${capital(other)}> {`;
    case 1:
      return `${indent}const ${noun}${dice.between(1, 99)} = await this.#${other}.${verb}({ limit: ${dice.between(1, 5000)}, signal });`;
    case 2:
      return `${indent}if (${noun}.${other} === undefined || ${noun}.size > ${dice.between(1, 512)}) return ${dice.chance(0.5) ? 'undefined' : `new ${capital(other)}Error('${verb} failed')`};`;
    case 3:
      return `${indent}// ${dice.pick(SENTENCES).slice(0, dice.between(30, 80))}`;
    case 4:
      return `${indent}for (const [${noun}, ${other}] of Object.entries(${verb}d)) results.push(\`\${${noun}}:\${${other}}\`);`;
    case 5:
      return `${indent}}`;
    default:
      return `import { ${verb}${capital(noun)}, type ${capital(other)} } from '../${other}/${verb}-${noun}.ts';`;
  }
}

function logLine(dice: Dice): string {
  const time = `2026-0${dice.between(1, 9)}-${dice.between(10, 28)}T${dice.between(10, 23)}:${dice.between(10, 59)}:${dice.between(10, 59)}.${dice.between(100, 999)}Z`;
  const level = dice.pick(['INFO ', 'DEBUG', 'WARN ', 'ERROR']);
  return `${time} ${level} [${dice.pick(NOUNS)}-${dice.between(1, 16)}] ${dice.pick(VERBS)} ${dice.pick(NOUNS)}=${hex(dice)} took ${dice.between(1, 9000)}ms status=${dice.pick(['ok', 'timeout', 'ECONNRESET'])}`;
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

function hex(dice: Dice): string {
  return dice.between(0x100000, 0xffffff).toString(16);
}
