//! What is sent: prompts with known token counts.
