// Values by names that people choose. A plain object has a `constructor` and a `toString` before anybody puts one there,
// and `__proto__` is no key of it at all. So what is kept by block, pin or dtype is a Map, and what a page file must hold
// as an object of JSON is a Table: the type hides its keys, and these functions see those alone that were put there.

declare const hidden: unique symbol;

/** An object of JSON by names that people choose. */
export interface Table<V> {
  readonly [hidden]: V;
}

const rawOf = <V>(table: Table<V>): Record<string, V> => table as unknown as Record<string, V>;

export function tableOf<V>(entries: Iterable<readonly [string, V]>): Table<V> {
  const raw = Object.create(null) as Record<string, V>;
  for (const [name, value] of entries) raw[name] = value;
  return raw as unknown as Table<V>;
}

export function valueAt<V>(table: Table<V> | undefined, name: string): V | undefined {
  return table && Object.hasOwn(table, name) ? rawOf(table)[name] : undefined;
}

export const entriesOf = <V>(table: Table<V> | undefined): [string, V][] => (table ? Object.entries(rawOf(table)) : []);

export const namesOf = (table: Table<unknown> | undefined): string[] => (table ? Object.keys(table) : []);

/** A copy with one value put in; the names keep their order. */
export function withValue<V>(table: Table<V> | undefined, name: string, value: V): Table<V> {
  return tableOf([...entriesOf(table), [name, value]]);
}

/** A table of the server's as a Map. */
export const mapOf = <V>(table: Table<V>): ReadonlyMap<string, V> => new Map(entriesOf(table));

/** The same with every value changed on its way. */
export function mapOfEach<V, W>(table: Table<V>, change: (value: V) => W): ReadonlyMap<string, W> {
  return new Map(entriesOf(table).map(([name, value]) => [name, change(value)]));
}

/** Whether two Maps hold the same, value by value. */
export function sameMap<V>(
  a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>, same: (a: V, b: V) => boolean,
): boolean {
  if (a.size !== b.size) return false;
  for (const [name, value] of b) {
    const other = a.get(name);
    if (other === undefined || !same(other, value)) return false;
  }
  return true;
}
