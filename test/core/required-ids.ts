/**
 * The conformance ids and bug cases that the loop answers for: each is named by a test of this folder, or of the folder
 * of the policy that keeps the promise.
 *
 * Ids that the list of behaviours leaves out (such as TC17) do not exist. Those of retries and of resent requests (RT, FB)
 * belong to the policies.
 */

function numbered(prefix: string, last: number, except: readonly number[] = []): readonly string[] {
  return Array.from({ length: last }, (_, index) => index + 1)
    .filter((number) => !except.includes(number))
    .map((number) => `${prefix}${number}`);
}

/** Behaviours of a correct loop. */
export const CONFORMANCE_IDS: readonly string[] = [
  ...numbered('LC', 11),
  ...numbered('TC', 36, [17, 18]),
  ...numbered('SC', 11),
  ...numbered('HK', 24, [15]),
  ...numbered('AB', 9),
  ...numbered('ER', 8, [3]),
  ...numbered('EV', 9),
  ...numbered('ST', 7),
  ...numbered('TR', 10),
  ...numbered('AP', 3),
  ...numbered('CX', 9),
  ...numbered('PJ', 12),
  ...numbered('RR', 3),
  ...numbered('V', 8),
  ...numbered('KS', 5),
  'SH1',
];

/** Faults of comparable projects that core must not have. */
export const BUG_CASE_IDS: readonly string[] = [
  ...['001', '124'],
  ...['053', '076', '110'],
  ...['035', '064', '065', '098', '121'],
  ...['026', '032', '086', '161'],
  ...['044', '070', '157'],
  ...['005', '083', '092', '019', '158'],
  ...['011', '040'],
  ...['071', '080'],
  ...['055', '139'],
  ...['046', '115'],
].map((number) => `BR-${number}`);

/** Features of the loop whose behaviour no conformance id covers. */
export const FEATURE_IDS: readonly string[] = ['A2', 'A4', 'A5', 'A6', 'A7', 'A8', 'A9', 'A10', 'A11', 'A12', 'A14', 'A15', 'A16', 'A17', 'A19', 'A20', 'A21'];

/** Ids whose promise a policy keeps: their tests stand with the policy. */
export const POLICY_IDS: readonly string[] = ['PJ11', 'PJ12'];
