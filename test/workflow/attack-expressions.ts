/** Doubles a value with every level, by two references to the same value. */
const DOUBLED = '$d := function($v, $n) { $n = 0 ? $v : $d([$v, $v], $n - 1) }';
const NESTED = '$d := function($v, $n) { $n = 0 ? $v : $d({"a": $v, "b": $v}, $n - 1) }';

/** Never ends, regardless of its context. */
export const ENDLESS = `(${NESTED}; $d(1, 40) != $d(1, 40))`;

/** Expressions that take for ever, or all memory, most of them within few evaluations. */
export const ATTACKS: readonly (readonly [what: string, source: string])[] = [
  ['deep equality of shared lists', `(${DOUBLED}; $d(1, 40) = $d(1, 40))`],
  ['deep equality of shared objects', ENDLESS],
  ['looking for a shared list in another', `(${DOUBLED}; $d(1, 40) in [$d(1, 40)])`],
  ['distinct shared lists', `(${DOUBLED}; $count($distinct([$d(1, 40), $d(1, 40)])))`],
  ['all that is beneath a shared object', `(${NESTED}; $count($d(1, 40).**))`],
  ['the text of a shared list', `(${DOUBLED}; $length($string($d(1, 40))))`],
  ['a shared list as result', `(${DOUBLED}; $d(1, 40))`],
  ['a copy of a shared object', `(${NESTED}; $d(1, 40) ~> |a|{"c": 1}|)`],
  ['a huge range', '[1..10000000]'],
  ['many huge ranges at once', '[[1..9999999], [1..9999999], [1..9999999], [1..9999999]]'],
  ['a product of ranges', '[1..9000].([1..9000].([1..9000]))'],
  ['long texts in a product', '$count([1..9999].$uppercase($pad("x", 60000) & $string($)))'],
  ['long texts joined', '$length($join([1..9999].$pad("x", 60000)))'],
  ['a long text put into a long text', '$replace($pad("", 60000, "a"), "a", $pad("", 60000, "b"))'],
  ['endless recursion', '($f := function($n) { $f($n + 1) }; $f(0))'],
  ['a sort that calls for every pair', '$sort([1..9999], function($a, $b) { $count([1..100].([1..100])) > 0 })'],
  ['a list that grows as it is reduced', '$reduce([1..9999], function($a, $b) { $append($a, [1..9000]) })'],
  ['a fold of doubled lists', `(${DOUBLED}; $map([1..9999], function($i) { $d($i, 12) = $d($i, 12) }))`],
];
