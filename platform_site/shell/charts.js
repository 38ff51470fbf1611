// Draws every <figure class="chart-figure"> (templates/foundation/chart.html) with Apache ECharts; charts.show(element) those that a
// script has added. On a canvas, and with tips that are drawn, too: the pages' policy allows no style attributes.
import {init, use} from 'echarts/core';
import {BarChart, LineChart, PieChart} from 'echarts/charts';
import {AriaComponent, GridComponent, LegendComponent, TooltipComponent} from 'echarts/components';
import {CanvasRenderer} from 'echarts/renderers';

use([AriaComponent, BarChart, CanvasRenderer, GridComponent, LegendComponent, LineChart, PieChart, TooltipComponent]);

const language = document.documentElement.lang || undefined;
const charts = new Map(); // drawing → its chart, from when it is first seen

// What a custom property stands for now: light-dark() is resolved in a property that is a colour.
function colour(drawing, name) {
  drawing.style.color = `var(--chart-${name})`;
  return getComputedStyle(drawing).color;
}

// The first series is plain; the others differ from it by more than their colour.
function patterns(color) {
  const lines = (rotation, ...dashArrayY) => ({color, symbol: 'rect', symbolSize: 1, dashArrayX: [1, 0], dashArrayY, rotation});
  return ['none', lines(-Math.PI / 4, 2, 5), lines(0, 1, 4), lines(Math.PI / 4, 1, 3), lines(Math.PI / 2, 2, 4)];
}

const COLOURS = 5;
// Lines differ by more than their colour, as bars do.
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'emptyCircle'];

// Up to so many categories have a name each; slanted where the names together are longer than so many characters.
const FEW = 8, SLANTED = 30;
const labelling = (categories) => (categories.length > FEW ? {hideOverlap: true} : {interval: 0, rotate: categories.join('').length > SLANTED ? 30 : 0});

function options(drawing, {kind, categories, series, unit, digits, stacked, links}) {
  const [text, grid, ground] = ['text', 'grid', 'ground'].map((name) => colour(drawing, name));
  const exact = new Intl.NumberFormat(language, {minimumFractionDigits: digits, maximumFractionDigits: digits});
  const short = new Intl.NumberFormat(language, {notation: 'compact'});
  const several = series.length > 1;
  const tip = {
    renderMode: 'richText', confine: true, backgroundColor: ground, borderColor: grid, textStyle: {color: text},
    valueFormatter: (figure) => (figure == null ? '–' : exact.format(figure) + unit),
  };
  const shared = {
    animation: false,
    // The page names the drawing, and has its figures as a table.
    aria: {enabled: true, label: {enabled: false}, decal: {show: several || kind === 'pie', decals: patterns(ground)}},
    textStyle: {fontFamily: getComputedStyle(drawing).fontFamily},
  };
  if (kind === 'pie') {
    // The last slice is beside the first.
    const place = (at) => (at && at % COLOURS === 0 && at === categories.length - 1 ? 2 : at % COLOURS);
    const colours = categories.map((_, at) => colour(drawing, place(at) + 1));
    return {
      ...shared, color: colours, tooltip: {...tip, trigger: 'item'},
      series: series.slice(0, 1).map(({name, figures}) => ({
        type: 'pie', name, radius: '75%', itemStyle: {borderColor: ground, borderWidth: 2}, label: {color: text, textBorderWidth: 0},
        data: categories.map((category, at) => ({name: category, value: figures[at]})).filter(({value}) => value > 0),
      })),
    };
  }
  return {
    ...shared,
    grid: {left: 4, right: 4, top: several ? 36 : 12, bottom: 4, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel'},
    legend: {
      // One line: more names than fit are turned over.
      show: several, type: several && series.length > 3 ? 'scroll' : 'plain', top: 0, left: 0, itemWidth: 18, itemHeight: 12, textStyle: {color: text}, selectedMode: false,
      pageIconColor: text, pageIconInactiveColor: grid, pageTextStyle: {color: text}, animationDurationUpdate: 0,
    },
    tooltip: {...tip, trigger: 'axis', axisPointer: {type: 'shadow'}},
    xAxis: {type: 'category', data: categories, axisTick: {show: false}, axisLine: {lineStyle: {color: grid}}, axisLabel: {color: text, ...labelling(categories)}},
    yAxis: {
      type: 'value', minInterval: digits ? 0 : 1, splitNumber: 3, splitLine: {lineStyle: {color: grid}},
      axisLabel: {color: text, formatter: (figure) => short.format(figure) + unit},
    },
    series: series.map(({name, figures, line, ...each}) => ({
      name, data: figures, color: colour(drawing, each.colour), cursor: links.length ? 'pointer' : 'default',
      ...(line ? {type: 'line', symbol: 'none', lineStyle: {type: 'dashed'}}
        : kind === 'line' ? {type: 'line', symbol: SYMBOLS[each.colour - 1], symbolSize: 7}
          : {type: 'bar', barMaxWidth: 40, stack: stacked ? 'all' : undefined}),
    })),
  };
}

function open(drawing) {
  const data = JSON.parse(drawing.parentElement.querySelector('script').textContent);
  const chart = init(drawing);
  chart.on('click', ({dataIndex}) => { if (data.links[dataIndex]) window.location.assign(data.links[dataIndex]); });
  const draw = () => chart.setOption(options(drawing, data), true);
  charts.set(drawing, {chart, draw});
  draw();
}

// A drawing in a closed tab has no size until the tab is opened; one that has left the page has none either.
const sizes = new ResizeObserver((entries) => {
  for (const {target, contentRect} of entries) {
    if (!target.isConnected) forget(target);
    else if (charts.has(target)) charts.get(target).chart.resize();
    else if (contentRect.width) open(target);
  }
});

function forget(drawing) {
  sizes.unobserve(drawing);
  charts.get(drawing)?.chart.dispose();
  charts.delete(drawing);
}

function show(root) {
  for (const drawing of root.querySelectorAll('.chart-drawing')) {
    drawing.hidden = false;
    sizes.observe(drawing);
  }
}
show(document);
window.charts = {show};

const redraw = () => charts.forEach(({draw}) => draw());
new MutationObserver(redraw).observe(document.documentElement, {attributeFilter: ['class']});
// Pages without a switch follow the system.
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
