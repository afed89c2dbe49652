// Measures how long a key takes until the shape it changes is drawn, on a page of many blocks.
//   node dev/latency.mjs ADDRESS [BLOCKS]     (needs playwright-core and a Chromium; neither is a dependency)
import { chromium } from 'playwright-core';

const [address, count = '500'] = process.argv.slice(2);
const blocks = [];
const wires = [];
for (let i = 0; i < Number(count); i++) {
  const at = [(i % 25) * 360, Math.floor(i / 25) * 260];
  if (i % 10 === 2 || i < 2) blocks.push({ id: `b${i}`, type: 'RandomNormal', at, pins: { shape: '{1,8,8,2}', dtype: 'DT_FLOAT', attrs: 'seed_ = 1' } });
  else {
    blocks.push({ id: `b${i}`, type: 'Relu', at, pins: {} });
    wires.push({ from: [`b${i - 1}`, i % 10 === 3 ? 'output' : 'activations'], to: [`b${i}`, 'features'] });
  }
}
const page = { format: 'convgrad-page', version: 1, name: 'many', blocks, wires };

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] });
const tab = await context.newPage();
const outside = [];
tab.on('request', (request) => { if (!request.url().startsWith(new URL(address).origin) && !request.url().startsWith('blob:')) outside.push(request.url()); });
const start = Date.now();
await tab.goto(address);
await tab.waitForSelector('.palette-row');
console.log('start to usable', Date.now() - start, 'ms');
await tab.evaluate((text) => navigator.clipboard.writeText(text), JSON.stringify(page));
await tab.locator('.react-flow__pane').click({ position: { x: 20, y: 20 } });
await tab.keyboard.press('Control+v');
await tab.getByTestId('status').getByText(`${count} blocks`).waitFor();
await tab.waitForTimeout(1500);
for (const zoomed of [false, true]) {
  await tab.keyboard.press(zoomed ? '0' : 'f');
  await tab.waitForTimeout(1000);
  await tab.keyboard.press('Escape');
  await tab.evaluate(() => document.querySelector('.react-flow__node[data-id="b262"]').focus({ preventScroll: true }));
  await tab.evaluate(() => {
    window.times = [];
    const times = window.times;
    const field = document.querySelector('[data-testid="field-b262-shape"]');
    field.focus({ preventScroll: true });
    field.setSelectionRange(2, 2);
    let pressed = 0;
    field.addEventListener('keydown', () => { pressed = performance.now(); }, true);
    const last = document.querySelector('[data-testid="spec-b263-activations"]');
    new MutationObserver(() => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => times.push(performance.now() - pressed);
      channel.port2.postMessage(0);
    })).observe(last, { characterData: true, subtree: true, childList: true });
  });
  for (let i = 0; i < 20; i++) {
    await tab.keyboard.press(i % 2 ? 'Backspace' : '2');
    await tab.waitForTimeout(250);
  }
  const times = (await tab.evaluate(() => window.times)).sort((a, b) => a - b);
  console.log(zoomed ? 'at 100 %' : 'whole page seen', `${times.length} keys, median ${times[times.length >> 1]?.toFixed(1)} ms, worst ${times.at(-1)?.toFixed(1)} ms`);
  await tab.keyboard.press('Escape');
  await tab.evaluate(() => document.activeElement.blur());
}
console.log('requests that left the machine:', outside.length);
console.log(await tab.getByTestId('status').innerText());
if (process.env.SHOT) await tab.screenshot({ path: process.env.SHOT });
await browser.close();
