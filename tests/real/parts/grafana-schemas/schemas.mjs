// JSON Schemas of Grafana's own types, for what our dashboards are made of: one JSON to stdout.
import { createGenerator } from "ts-json-schema-generator";

const TYPES = "node_modules/@grafana/schema/dist/types/raw";
const WANTED = {
  dashboard: ["dashboard", "Dashboard"],
  "state-timeline custom": ["composable/statetimeline/panelcfg", "FieldConfig"],
  "state-timeline options": ["composable/statetimeline/panelcfg", "Options"],
  "stat options": ["composable/stat/panelcfg", "Options"],
  "table options": ["composable/table/panelcfg", "Options"],
  "table custom": ["composable/table/panelcfg", "FieldConfig"],
  "timeseries options": ["composable/timeseries/panelcfg", "Options"],
  "timeseries custom": ["composable/timeseries/panelcfg", "FieldConfig"],
};

const made = Object.entries(WANTED).map(([name, [folder, type]]) => {
  const path = `${TYPES}/${folder}/x/types.gen.d.ts`;
  const schema = createGenerator({ path, type, skipTypeCheck: true });
  return [name, schema.createSchema(type)];
});
process.stdout.write(`${JSON.stringify(Object.fromEntries(made))}\n`);
