/** The command line: what is asked for, and what is refused with a way out. */
import { describe, expect, it } from 'vitest';
import { chooseModel } from './model.ts';
import { parseOptions } from './options.ts';

const NONE = { question: undefined, folder: '.', model: undefined, resume: undefined, fork: undefined, isList: false, isChat: false, isJson: false, isHelp: false };

describe('parseOptions', () => {
  it.each([
    [[], {}],
    [['read README.md'], { question: 'read README.md' }],
    [['read', 'README.md'], { question: 'read README.md' }],
    [['--json', '--dir', '/tmp', 'list the files'], { question: 'list the files', folder: '/tmp', isJson: true }],
    [['--chat', '--dir=/tmp', '--model', 'm'], { folder: '/tmp', isChat: true, model: 'm' }],
    [['--resume'], { resume: 'newest', isChat: true }],
    [['--resume', 'and now?'], { resume: 'newest', question: 'and now?' }],
    [['--resume', 'session_1', 'and', 'now?'], { resume: 'session_1', question: 'and now?' }],
    [['--resume=session_1', '--chat'], { resume: 'session_1', isChat: true }],
    [['--fork', 'session_1', 'and now?'], { fork: 'session_1', question: 'and now?' }],
    [['--list', '--dir', '/tmp'], { isList: true, folder: '/tmp' }],
    [['-h'], { isHelp: true }],
    [['--', '--help'], { question: '--help' }],
    [[''], {}],
  ])('reads %j', (argv, wanted) => {
    expect(parseOptions(argv)).toStrictEqual({ ...NONE, ...wanted });
  });

  it('refuses what it does not know, and a folder without anything to do there', () => {
    expect(() => parseOptions(['--jsno'])).toThrow("Unknown option '--jsno'");
    expect(() => parseOptions(['--dir'])).toThrow('--dir');
    expect(() => parseOptions(['--fork'])).toThrow('--fork');
    expect(() => parseOptions(['--fork', 'a', '--resume'])).toThrow('exclude each other');
    expect(() => parseOptions(['--dir', '/tmp'])).toThrow('--dir needs a question, or --chat');
  });
});

describe('chooseModel', () => {
  it('takes the embedded model unless there is a key or an address', () => {
    expect(chooseModel({}, undefined).llm.modelId).toBe('tiny-coder');
    expect(chooseModel({ OPENAI_API_KEY: '' }, undefined).llm.modelId).toBe('tiny-coder');
    expect(chooseModel({ OPENAI_API_KEY: 'k' }, undefined).llm.modelId).toBe('gpt-4.1-mini');
    expect(chooseModel({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'm' }, undefined).llm.modelId).toBe('m');
    expect(chooseModel({ OPENAI_API_KEY: 'k', OPENAI_MODEL: 'm' }, 'n').llm.modelId).toBe('n');
  });

  it('refuses a model that no server can be asked for', () => {
    expect(() => chooseModel({}, 'n')).toThrow('--model needs OPENAI_API_KEY');
  });
});
