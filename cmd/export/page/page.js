"use strict";
/* The timeline to look into: the picture's rows as a canvas that zooms from bins of time to single operations. */
(function () {
  document.body.classList.remove("no-script");
  addEventListener("beforeprint", function () {
    document.querySelectorAll("#findings details").forEach(function (part) { part.open = true; });
  });
  function openTarget() {
    var part = location.hash && document.getElementById(location.hash.slice(1));
    if (part && part.tagName === "DETAILS") part.open = true;
  }
  addEventListener("hashchange", openTarget);
  openTarget();

  // The squares of the map: a click says whose it is.
  addEventListener("click", function (event) {
    var square = event.target.closest && event.target.closest(".hosts ul li");
    if (square) document.querySelector("#map .says").textContent = square.title;
  });

  // The worst finding as a message: its sentence, the fix, and the address that leads to it.
  function message() {
    var finding = document.querySelector("#findings article"), lines = [document.querySelector("h1").firstChild.textContent];
    ["p.at", "p.others", "p.todo"].forEach(function (each) {
      var part = finding && finding.querySelector(each);
      if (part) lines.push(part.textContent.trim());
    });
    if (finding && location.protocol !== "file:") lines.push(location.href.split("#")[0] + "#" + finding.id);
    return lines.join("\n");
  }
  function copy(text) {
    var area = document.createElement("textarea"); // navigator.clipboard is for HTTPS and this machine's own addresses alone
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  window.addCopy = function () {
    var headline = document.querySelector("h1.headline"), button = document.createElement("button");
    if (!headline || headline.querySelector("button")) return;
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy for chat";
    button.addEventListener("click", function () { copy(message()); button.textContent = "Copied"; });
    headline.append(button);
  };
  addCopy();

  var chosen = null, stop = null;         // what the reader zoomed to, which a new picture keeps; what ends the last one
  window.drawTimeline = function () {
  if (stop) stop.abort();
  stop = new AbortController();
  var source = document.getElementById("data"), picture = document.getElementById("picture"), until = { signal: stop.signal };
  if (!source || !picture) return;
  var data = JSON.parse(source.textContent);
  var rows = Array.prototype.map.call(picture.querySelectorAll(".row"), function (element, index) {
    var row = { label: element.firstChild.textContent, bins: [], ops: data.rows[index].ops, whole: data.rows[index].whole,
                lanes: Math.max(1, data.rows[index].lanes) };
    element.querySelectorAll("path").forEach(function (path) {
      path.getAttribute("d").replace(/M(\d+) 0h(\d+)/g, function (_, from, length) {
        row.bins.push([+from, +from + +length, path.getAttribute("class")]);
      });
    });
    row.from = row.ops.length && !row.whole ? row.ops[0][3] : 0;   // details begin here
    row.thin = data.rows.length > 64 && !(data.grouped && row.ops.length);
    row.ops.forEach(function (op) { if (!row.whole && op[3] < row.from) row.from = op[3]; });
    return row;
  });
  var total = Math.max(1, data.end), view = { from: 0, to: total }, at = { row: 0, op: -1 };
  var canvas = document.createElement("canvas"), tools = document.createElement("div"), description = document.createElement("div");
  var LABEL = 88, AXIS = 22, least = 1;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Timeline. Arrow keys move in time and between rows, plus and minus zoom, N and P go from " +
                      "operation to operation, A shows all, E the end.");
  description.id = "description";
  description.setAttribute("aria-live", "polite");
  tools.className = "tools";
  [["All", all], ["The end", theEnd], ["−", function () { zoom(2); }], ["+", function () { zoom(0.5); }],
   ["◀", function () { move(-0.3); }], ["▶", function () { move(0.3); }]].forEach(function (tool) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = tool[0];
    button.setAttribute("aria-label", { "−": "zoom out", "+": "zoom in", "◀": "earlier", "▶": "later" }[tool[0]] || tool[0]);
    button.addEventListener("click", tool[1]);
    tools.appendChild(button);
  });
  picture.before(tools);
  picture.after(canvas, description);
  picture.hidden = true;
  canvas.title = "";
  say();

  function color(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
  function laneHeight(row) { return row.thin ? 4 : Math.max(5, Math.min(16, 22 / row.lanes)); }
  function height(row) { return Math.max(row.thin ? 6 : 16, row.lanes * (laneHeight(row) + 1)); }
  function time(us) {
    var span = view.to - view.from;
    if (us < 1000 && span < 1e4) return us.toFixed(0) + " µs";
    if (us < 1e6 && span < 1e6) return (us / 1e3).toFixed(span < 1e4 ? 2 : 1) + " ms";
    return (us / 1e6).toFixed(span < 1e4 ? 5 : span < 1e6 ? 3 : span < 2e7 ? 1 : 0) + " s";
  }
  function length(us) { return us < 1000 ? us + " µs" : us < 1e6 ? (us / 1e3).toFixed(2) + " ms" : (us / 1e6).toFixed(2) + " s"; }

  function draw() {
    var width = canvas.clientWidth, scale = window.devicePixelRatio || 1, tall = AXIS;
    LABEL = width < 560 ? 56 : 88;
    rows.forEach(function (row) { row.top = tall; tall += height(row) + (row.thin ? 1 : 5); });
    canvas.style.height = tall + "px";
    canvas.width = width * scale;
    canvas.height = tall * scale;
    var g = canvas.getContext("2d"), perUs = (width - LABEL) / (view.to - view.from);
    function x(us) { return LABEL + (us - view.from) * perUs; }
    g.scale(scale, scale);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    axis(g, width, tall, x);
    var fill = { running: color("running"), queued: color("queued"), stuck: color("stuck") };
    var code = color("code"), soft = color("soft"), ink = color("ink"), card = color("card");
    rows.forEach(function (row, index) {
      var tallRow = height(row);
      g.globalAlpha = .55;
      g.fillStyle = code;
      g.fillRect(LABEL, row.top, width - LABEL, tallRow);
      g.globalAlpha = 1;
      g.fillStyle = index === at.row && document.activeElement === canvas ? ink : soft;
      if (!row.thin || index % 8 === 0) g.fillText(row.label, 0, row.top + tallRow / 2, LABEL - 8);
      g.save();
      g.beginPath();
      g.rect(LABEL, row.top, width - LABEL, tallRow);
      g.clip();
      row.bins.forEach(function (bin) {          // where no details are known
        var from = bin[0] * total / data.bins, to = bin[1] * total / data.bins;
        if (row.ops.length) to = Math.min(to, row.from);
        if (to <= view.from || from >= view.to || to <= from) return;
        g.fillStyle = fill[bin[2]];
        g.fillRect(x(from), row.top, Math.max(least, (to - from) * perUs), tallRow);
      });
      var lane = laneHeight(row);
      function drawOne(op, number) {
        var end = op[4] < 0 ? total : op[4];
        if (end < view.from || op[3] > view.to) return;
        var left = x(Math.max(op[3], view.from)), wide = Math.max(least, x(Math.min(end, view.to)) - left), y = row.top + op[0] * (lane + 1);
        g.fillStyle = fill[op[4] === -1 ? "stuck" : op[4] === -2 ? "queued" : "running"];
        g.fillRect(left, y, wide - (wide > 4 ? 1 : 0), lane);
        if (wide > 46 && lane > 9) {
          g.fillStyle = op[4] === -2 ? ink : card;
          g.save();
          g.beginPath(); g.rect(left, y, wide - 4, lane); g.clip();
          g.font = "11px system-ui, sans-serif";
          g.fillText(data.names[op[1]].split("(")[0] + " #" + op[2], left + 4, y + lane / 2 + .5);
          g.restore();
        }
        if (index === at.row && number === at.op) {
          g.strokeStyle = ink; g.lineWidth = 2;
          g.strokeRect(left + 1, y + 1, Math.max(2, wide - 2), lane - 2);
        }
      }
      row.ops.forEach(function (op, number) { if (op[4] === -2) drawOne(op, number); });     // behind what they wait for
      row.ops.forEach(function (op, number) { if (op[4] !== -2) drawOne(op, number); });
      g.restore();
    });
    data.marks.forEach(function (mark) {
      var row = rows[mark[0]], px = x(mark[1]);
      if (!row || px < LABEL || px > width) return;
      g.fillStyle = color("error");
      g.beginPath(); g.moveTo(px - 4, row.top - 4); g.lineTo(px + 4, row.top - 4); g.lineTo(px, row.top + 3); g.fill();
    });
  }

  function axis(g, width, tall, x) {
    var span = view.to - view.from, step = Math.pow(10, Math.floor(Math.log10(span / 4))), room = (width - LABEL) / 90;
    [1, 2, 5, 10, 20, 50].some(function (times) {
      if (span / (step * times) <= room) { step *= times; return true; }
      return false;
    });
    g.strokeStyle = color("line");
    g.fillStyle = color("soft");
    for (var tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
      var px = Math.round(x(tick)) + .5, text = time(tick);
      g.beginPath(); g.moveTo(px, AXIS - 5); g.lineTo(px, tall); g.stroke();
      g.fillText(text, Math.min(px + 3, width - g.measureText(text).width), 8);
    }
  }

  function set(from, to) {
    var span = Math.max(Math.min(50, total), Math.min(total, to - from));
    view.from = Math.max(0, Math.min(total - span, from));
    view.to = view.from + span;
    chosen = { from: view.from, to: view.to };
    draw();
  }
  function zoom(times, around) {
    var middle = around === undefined ? (view.from + view.to) / 2 : around;
    set(middle - (middle - view.from) * times, middle + (view.to - middle) * times);
  }
  function move(part) { var by = (view.to - view.from) * part; set(view.from + by, view.to + by); }
  function all() { set(0, total); chosen = null; }
  function theEnd() {          // the last operations that did end, and the beginning of what did not
    var last = 0, first = total;
    rows.forEach(function (row) {
      row.ops.slice(-40).forEach(function (op) {
        last = Math.max(last, op[4] < 0 ? op[3] : op[4]);
        first = Math.min(first, op[3]);
      });
    });
    if (last > first) set(last - (last - first) * 1.02, last + (last - first) * .15);
  }

  function say() {
    var row = rows[at.row], op = row && row.ops[at.op];
    description.textContent = "";
    if (!op) {
      description.textContent = "Drag to move, pinch or Ctrl+wheel to zoom, point at an operation; or use the keyboard: arrows, + and −, N and P, A, E.";
      return;
    }
    var strong = document.createElement("strong");
    strong.textContent = row.label.trim() + ": " + data.names[op[1]] + " #" + op[2];
    description.append(strong, document.createElement("br"),
                "from " + length(op[3]) + (op[4] === -1 ? ", never ended" : op[4] === -2 ? ", its stream never reached it" : " for " + length(op[4] - op[3])));
  }
  function rowAt(y) {
    for (var i = 0; i < rows.length; i++) if (y < rows[i].top + height(rows[i]) + 3) return i;
    return rows.length - 1;
  }
  function timeAt(px) { return view.from + (px - LABEL) / (canvas.clientWidth - LABEL) * (view.to - view.from); }
  function point(event) {
    var box = canvas.getBoundingClientRect(), us = timeAt(event.clientX - box.left), y = event.clientY - box.top;
    var index = rowAt(y), row = rows[index], lane = Math.floor((y - row.top) / (laneHeight(row) + 1));
    var slack = (view.to - view.from) / (canvas.clientWidth - LABEL) * 3, best = -1, found = Infinity;
    row.ops.forEach(function (op, number) {
      if (op[0] !== lane) return;
      var end = op[4] < 0 ? total : op[4], away = us < op[3] ? op[3] - us : us > end ? us - end : 0;
      if (away <= slack && (away < found || (away === found && op[4] !== -2))) { best = number; found = away; }
    });
    if (best < 0 && !row.ops.length) return;
    at = { row: index, op: best };
    say();
    draw();
  }
  function step(by) {
    var row = rows[at.row], ops = row.ops;
    if (!ops.length) return;
    at.op = at.op < 0 ? (by > 0 ? 0 : ops.length - 1) : Math.max(0, Math.min(ops.length - 1, at.op + by));
    var op = ops[at.op];
    if (op[3] < view.from || op[3] > view.to) { var half = (view.to - view.from) / 2; set(op[3] - half, op[3] + half); }
    say();
    draw();
  }

  var fingers = {}, spread = 0;
  canvas.addEventListener("pointerdown", function (event) { fingers[event.pointerId] = event; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", function (event) {
    var held = Object.keys(fingers);
    if (!held.length) return point(event);
    if (held.length === 2) {
      fingers[event.pointerId] = event;
      var two = held.map(function (id) { return fingers[id]; }), now = Math.abs(two[0].clientX - two[1].clientX);
      if (spread && now > 10) zoom(spread / now, timeAt((two[0].clientX + two[1].clientX) / 2 - canvas.getBoundingClientRect().left));
      spread = now;
      return;
    }
    var before = fingers[event.pointerId];
    if (!before) return;
    var by = (before.clientX - event.clientX) / (canvas.clientWidth - LABEL) * (view.to - view.from);
    fingers[event.pointerId] = event;
    set(view.from + by, view.to + by);
  });
  ["pointerup", "pointercancel"].forEach(function (name) {
    canvas.addEventListener(name, function (event) { delete fingers[event.pointerId]; spread = 0; if (name === "pointerup") point(event); });
  });
  canvas.addEventListener("wheel", function (event) {
    if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(Math.exp(event.deltaY / 200), timeAt(event.clientX - canvas.getBoundingClientRect().left));
    else move(event.deltaX / (canvas.clientWidth - LABEL));
  }, { passive: false });
  canvas.addEventListener("keydown", function (event) {
    var keys = {
      ArrowLeft: function () { move(-0.2); }, ArrowRight: function () { move(0.2); },
      ArrowUp: function () { at = { row: Math.max(0, at.row - 1), op: -1 }; say(); draw(); },
      ArrowDown: function () { at = { row: Math.min(rows.length - 1, at.row + 1), op: -1 }; say(); draw(); },
      "+": function () { zoom(0.5); }, "=": function () { zoom(0.5); }, "-": function () { zoom(2); },
      n: function () { step(1); }, p: function () { step(-1); }, a: all, e: theEnd, Home: function () { set(0, view.to - view.from); },
      End: function () { set(total - (view.to - view.from), total); }
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  ["focus", "blur"].forEach(function (name) { canvas.addEventListener(name, draw); });
  addEventListener("resize", draw, until);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, until);
  draw();
  if (chosen) set(chosen.from, chosen.to);
  else if (rows.some(function (row) { return row.ops.some(function (op) { return op[4] < 0; }); })) {
    theEnd();
    chosen = null;
  }
  };
  drawTimeline();
})();
