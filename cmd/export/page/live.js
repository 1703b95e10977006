"use strict";
/* The page that `ddpcheck serve` shows, kept up to date: asks once a second while somebody looks, and replaces the sections
   that changed. What is open stays open; nothing changes below a selection. */
(function () {
  var EVERY_MS = 1000, tag = "", state = document.createElement("p"), sections = {}, answered = Date.now();
  state.id = "live";
  state.setAttribute("role", "status");

  function report(text, isTrouble) {
    if (state.textContent !== text) state.textContent = text;
    state.className = isTrouble ? "trouble" : "";
    var brand = document.querySelector(".brand");
    if (brand && state.previousElementSibling !== brand) brand.after(state);
  }
  function reportAnswer() {
    report("recording" in document.querySelector("header").dataset ? "live" : "up to date; nothing is being recorded", false);
  }
  function remember(page) {
    page.querySelectorAll("header, main > section").forEach(function (part) { sections[part.id] = part.outerHTML; });
  }
  function summaries(part) {
    return Array.prototype.map.call(part.querySelectorAll("details"), function (each) {
      return [each, each.id || each.querySelector("summary").textContent];
    });
  }
  function replace(old, part) {
    var open = summaries(old).filter(function (each) { return each[0].open; }).map(function (each) { return each[1]; });
    summaries(part).forEach(function (each) { if (open.indexOf(each[1]) >= 0) each[0].open = true; });
    old.replaceWith(part);
  }
  function show(text) {
    var page = new DOMParser().parseFromString(text, "text/html"), known = sections, main = document.querySelector("main");
    if (!page.querySelector("main")) return;
    sections = {};
    remember(page);
    document.title = page.title;
    if (!main) document.body.replaceChildren(page.querySelector("header"), page.querySelector("main"));
    else {
      if (known[""] !== sections[""]) replace(document.querySelector("header"), page.querySelector("header"));
      main.querySelectorAll(":scope > section").forEach(function (part) { if (!(part.id in sections)) part.remove(); });
      var before = null;
      page.querySelectorAll("main > section").forEach(function (part) {
        var old = document.getElementById(part.id);
        if (!old) { if (before) before.after(part); else main.prepend(part); }
        else if (known[part.id] !== sections[part.id]) replace(old, part);
        before = document.getElementById(part.id);
      });
    }
    window.addCopy();
    if (known.timeline !== sections.timeline) window.drawTimeline();
  }
  function isRead() {
    var selection = getSelection();
    return selection && !selection.isCollapsed;
  }
  function look() {
    if (document.hidden || isRead()) return setTimeout(look, EVERY_MS);
    fetch(".", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} }).then(function (answer) {
      answered = Date.now();
      if (answer.status === 304) return reportAnswer();
      return answer.text().then(function (text) {
        if (answer.status !== 200) {
          var why = new DOMParser().parseFromString(text, "text/html").querySelector(".verdict, body");
          return report(why.textContent.trim(), true);
        }
        tag = answer.headers.get("ETag") || "";
        show(text);
        reportAnswer();
      });
    }).catch(function () {
      report("no answer from ddpcheck for " + Math.round((Date.now() - answered) / 1000) + " s; this page is as old", true);
    }).then(function () { setTimeout(look, EVERY_MS); });
  }
  remember(document);
  look();
})();
