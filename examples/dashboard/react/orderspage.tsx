import { createRoot } from "react-dom/client";
import { Orders } from "./orders.tsx";

createRoot(document.querySelector("#root")!).render(<><h1>Orders</h1><Orders /></>);
