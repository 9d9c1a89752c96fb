"use strict";
// The address of the page holds the findings, those of both cases where two are compared, and the query.

// A frame without an address of its own still gives the part that counts.
function address(session) {
  const page = location.protocol === "about:" ? "" : location.href.split("#")[0];
  return `${page}#${toFragment(session)}`;
}

// The part of the address after "#" follows the findings and the query, and these follow it.
function followAddress(session, complain) {
  const read = async () => {
    const text = location.hash.slice(1);
    if (text === toFragment(session)) return;
    const { query, problems, ...cases } = fromFragment(session.model, text);
    if (query !== null) session.choose(query);
    await session.restore(cases);
    if (problems.length) complain(`Not everything in the address could be read. ${problems.join(" ")}`);
  };
  const write = later(() => {
    const text = toFragment(session);
    if (text === location.hash.slice(1)) return;
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // a frame without an address of its own
    }
  }, 50); // browsers are slow at this
  addEventListener("hashchange", read);
  session.listen((what) => ["settled", "query", "cases"].includes(what) && write());
  if (location.hash.length > 1) read();
}
