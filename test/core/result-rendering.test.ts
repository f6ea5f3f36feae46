/** What the model sees of a recorded result. The record itself stays raw. */
import { describe, expect, it } from 'vitest';
import { type RecordedToolResult, renderToolResult, type ToolResultPart } from 'turnloop';
import { recordingTool, runScripted, toolCall } from 'turnloop/testing';

const IMAGE: ToolResultPart = { type: 'media', mediaType: 'image/png', data: 'aGk=' };
const STATUS = 'Error: the tool call failed.';

function text(content: string): ToolResultPart {
  return { type: 'text', text: content };
}

describe('renderToolResult', () => {
  it.each<[string, RecordedToolResult, readonly ToolResultPart[]]>([
    ['RR1 leaves the text of a success unchanged', { content: [text('fine\n')] }, [text('fine\n')]],
    ['RR1 puts a status line before an error', { content: [text('no disk')], isError: true }, [text(`${STATUS}\nno disk`)]],
    ['RR1 does so even if the text says it already', { content: [text('Error: no')], isError: true }, [text(`${STATUS}\nError: no`)]],
    ['RR2 says that an error is empty', { content: [], isError: true }, [text('Error: the tool call failed and gave no output.')]],
    ['RR2 says so of a blank error', { content: [text(' \n')], isError: true }, [text('Error: the tool call failed and gave no output.')]],
    ['RR2 says that a success is empty', { content: [] }, [text('(The tool gave no output.)')]],
    ['RR2 says so of a blank success', { content: [text('\t ')] }, [text('(The tool gave no output.)')]],
    ['RR2 gives an error of several parts its status as a part', { content: [text('a'), IMAGE], isError: true }, [text(STATUS), text('a'), IMAGE]],
    ['RR2 keeps media of an error', { content: [IMAGE], isError: true }, [text(STATUS), IMAGE]],
    ['RR3 joins a note behind the last text', { content: [text('out')], note: 'page 2 of 9' }, [text('out\npage 2 of 9')]],
    ['RR3 joins a note behind media as its own part', { content: [text('a'), IMAGE], note: 'n' }, [text('a'), IMAGE, text('n')]],
    ['RR3 puts a note behind the status of an empty result', { content: [], note: 'n' }, [text('(The tool gave no output.)\nn')]],
    ['RR3 leaves a note as it is, blanks included', { content: [text('out')], note: '  <n> ' }, [text('out\n  <n> ')]],
    ['RR3 ignores an empty note', { content: [text('out')], note: '' }, [text('out')]],
  ])('%s', (_name, result, expected) => {
    expect(renderToolResult(result)).toStrictEqual(expected);
  });

  it('does not change what it is given', () => {
    const result: RecordedToolResult = { content: [text('a'), text(' ')], isError: true, note: 'n' };
    const before = JSON.stringify(result);

    renderToolResult(result);

    expect(JSON.stringify(result)).toBe(before);
  });

  it('RR3 is what the next request has, while the record stays raw', async () => {
    const tool = recordingTool({ execute: () => ({ content: 'no disk', isError: true, note: 'try later' }) });

    const { llm, recording } = await runScripted({ replies: [toolCall('record'), 'done'], tools: [tool] });

    expect(llm.requests[1]!.messages.at(-1)!.content).toStrictEqual([text(`${STATUS}\nno disk\ntry later`)]);
    expect(recording.of('tool.result')[0]!.result).toStrictEqual({ content: [text('no disk')], isError: true, note: 'try later' });
  });
});
