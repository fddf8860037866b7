//! Baseten's Parquet files, written here column by column as other programs lay them out.

use std::sync::Arc;

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use bytes::Bytes;

use super::*;

const SCHEMA: &str = "message schema {
    REQUIRED INT64 timestamp_start_unix_ms;
    REQUIRED BYTE_ARRAY prompt (UTF8);
    REQUIRED INT64 input_tokens;
    REQUIRED INT64 output_tokens;
    OPTIONAL GROUP total_hashes (LIST) { REPEATED GROUP list { OPTIONAL INT64 element; } }
    OPTIONAL BYTE_ARRAY provided_session_id (UTF8);
    OPTIONAL INT64 poor_man_session_id;
    REQUIRED INT32 request_canceled;
    OPTIONAL INT64 duration_e2e_ms;
    OPTIONAL INT64 something_else;
}";

fn file(compression: Compression) -> Bytes {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))
        .expect("memory can be written");
    let mut group = writer.next_row_group().expect("memory can be written");
    let mut number = 0;
    while let Some(mut column) = group.next_column().expect("columns follow") {
        let longs: Option<&[i64]> = match number {
            0 => Some(&[1_000, 3_000, 2_000]),
            2 => Some(&[128, 130, 64]),
            3 => Some(&[50, 0, 7]),
            _ => None,
        };
        if let Some(values) = longs {
            let typed = column.typed::<Int64Type>();
            typed.write_batch(values, None, None).expect("writable");
        }
        match number {
            1 => {
                let texts = ["a", "b", "c"].map(ByteArray::from);
                let typed = column.typed::<ByteArrayType>();
                typed.write_batch(&texts, None, None).expect("writable");
            }
            // Two lists, the second with a hash of 64 bits, and none.
            4 => {
                let typed = column.typed::<Int64Type>();
                typed
                    .write_batch(
                        &[10, 11, 10, -1],
                        Some(&[3, 3, 3, 3, 0]),
                        Some(&[0, 1, 0, 1, 0]),
                    )
                    .expect("writable");
            }
            5 => {
                let typed = column.typed::<ByteArrayType>();
                typed
                    .write_batch(&[ByteArray::from("A")], Some(&[1, 0, 0]), None)
                    .expect("writable");
            }
            6 => {
                let typed = column.typed::<Int64Type>();
                typed
                    .write_batch(&[7, 8], Some(&[1, 1, 0]), None)
                    .expect("writable");
            }
            7 => {
                let typed = column.typed::<Int32Type>();
                typed.write_batch(&[0, 0, 1], None, None).expect("writable");
            }
            8 | 9 => {
                let typed = column.typed::<Int64Type>();
                typed
                    .write_batch(&[800], Some(&[1, 0, 0]), None)
                    .expect("writable");
            }
            _ => {}
        }
        column.close().expect("writable");
        number += 1;
    }
    group.close().expect("writable");
    writer.close().expect("writable");
    Bytes::from(bytes)
}

fn read(bodies: Bodies, bytes: Bytes) -> Vec<String> {
    let options = ReadOptions {
        bodies,
        ..ReadOptions::of(Format::Baseten)
    };
    let rows = Rows::<Cursor<Vec<u8>>>::parquet(options, bytes, "t").expect("it is Parquet");
    rows.map(|row| match row {
        Ok(row) => told(&row),
        Err(error) => error.to_string(),
    })
    .collect()
}

#[test]
fn rows_come_from_the_columns_by_name() {
    let zstd = Compression::ZSTD(ZstdLevel::default());
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd] {
        let bytes = file(compression);
        let format = Format::detect(&bytes).expect("a known format").format;
        assert_eq!(format, Format::Baseten);
        assert_eq!(
            read(Bodies::Drop, bytes),
            [
                "1 128/50 [10, 11]x64 A took 0.8",
                // No answer was counted: it failed. The order is not that of the times.
                "3 130/? [10, 18446744073709551615]x64 8 failed",
                "2 64/7 failed",
            ]
        );
    }
    let kept = read(Bodies::Keep, file(Compression::SNAPPY));
    assert!(kept[0].ends_with(" text a"), "{kept:?}");
}

#[test]
fn a_file_that_is_no_trace_is_told() {
    let options = || ReadOptions::of(Format::Baseten);
    let open = |bytes: Bytes| {
        Rows::<Cursor<Vec<u8>>>::parquet(options(), bytes, "t")
            .err()
            .expect("refused")
    };
    let whole = file(Compression::SNAPPY);
    assert!(open(whole.slice(..whole.len() / 2)).contains("Parquet"));
    let schema =
        Arc::new(parse_message_type("message schema { REQUIRED INT64 a; }").expect("a schema"));
    let mut bytes = Vec::new();
    let writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).expect("writable");
    writer.close().expect("writable");
    let told = open(Bytes::from(bytes));
    assert!(
        told.ends_with("the columns are a\n  wanted: a column `timestamp_start_unix_ms`"),
        "{told}"
    );
}
