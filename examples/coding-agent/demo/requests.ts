/**
 * What `npm start` shows when it is not asked anything: conversations that the embedded model gets right on the sample
 * workspace beside this file. Each list is one conversation.
 */
export const DEMO_CONVERSATIONS: readonly (readonly string[])[] = [
  ['hello', 'What can you do?'],
  ['list the files'],
  // Two calls in one reply: both files are read at the same time.
  ['read README.md and package.json'],
  // Two steps: what the search finds is read next.
  ['search for BASE_DELAY in src and read the first file'],
  // An edit, then a command.
  ['replace 1.2.0 by 1.3.0 in package.json and run the tests'],
  // A conversation of several turns.
  ['read docs/guide.md', 'replace Guide by Manual in docs/guide.md', 'show me the file'],
  // Failures are results like any other: the model is told, and says so.
  ['read missing.txt'],
  ['run cat missing.txt'],
  ['What is the weather in Paris?'],
];
