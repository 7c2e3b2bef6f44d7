import { createRoot } from "react-dom/client";
import { Flags } from "./flags.tsx";

createRoot(document.querySelector("#root")!).render(<><h1>Flags</h1><Flags /></>);
